"""Built-in plugins, registered through the hooks that a stranger's plugin uses."""
