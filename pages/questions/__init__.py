"""Questions, a place of the rail: what is measured with, and what is held out?"""
