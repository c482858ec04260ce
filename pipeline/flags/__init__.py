"""Flags by topic. Each module defines its flags, and reads them once into a frozen value.

Rules: a flag's help says its unit and default; validators look at values only,
never at the file system; nothing changes a flag after parsing.
"""
