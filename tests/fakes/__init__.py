"""Stand-ins for what a PC would bring: engines, sensors, devices, and what they say."""
