"""log_differences, recoveries, replays."""
