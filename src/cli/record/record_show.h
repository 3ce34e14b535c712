/* record_show.h - a recording for people and for programs. */
#ifndef DV_CLI_RECORD_SHOW_H
#define DV_CLI_RECORD_SHOW_H

struct dv_buf;
struct dv_tape_record;

/* Adds a line of text about the record. `started` is the beginning of its call, or NULL. */
void dv_record_print_text(const struct dv_tape_record *record, const struct dv_tape_record *started,
                          struct dv_buf *buf);
/* Adds a JSON object on a line. */
void dv_record_print_json(const struct dv_tape_record *record, const struct dv_tape_record *started,
                          struct dv_buf *buf);

#endif
