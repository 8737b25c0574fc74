"""A gateway for programs that hold no keys: `effectful-agents serve gateway`. It needs the extra `web`."""
