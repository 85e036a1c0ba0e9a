"""Sample → statistic → finding. Pure: no clock, no socket, nothing accumulated; same records, same words."""
