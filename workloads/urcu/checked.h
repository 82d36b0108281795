/* The beginning and end of a read section, with liburcu's own checks; by flavour. */
struct checked_sections {
	void (*read_lock)(void), (*read_unlock)(void);
};

extern const struct checked_sections checked_mb, checked_memb, checked_bp, checked_signal;
