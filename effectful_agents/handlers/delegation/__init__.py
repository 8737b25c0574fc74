"""Work that is done elsewhere: operations that another process performs, which holds the keys and the policy."""
