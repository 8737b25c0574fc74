"""Runs, approvals and chats for people, in a browser: `effectful-agents serve web SCRIPT|DB`."""
