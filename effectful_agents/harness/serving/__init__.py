"""Scripts as servers, for programs and for people."""
