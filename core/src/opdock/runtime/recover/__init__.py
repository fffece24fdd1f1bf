"""What happens when a kernel declines or a device is lost while a step runs."""
