//! From plans to records: threads, placement, and windows until the interval is narrow.
