"""Reads the PC's devices and sensors."""
