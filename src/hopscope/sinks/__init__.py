"""Where output goes: files, later textfiles, pushes and notifications."""
