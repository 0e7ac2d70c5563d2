"""Another PC, over ssh: its engine and sensors at the end of a line, and that line's end there."""
