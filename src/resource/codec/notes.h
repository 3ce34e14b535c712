/* notes.h - what a decoder tells beside the value: fields that are unknown or repeated. */
#ifndef DV_RESOURCE_NOTES_H
#define DV_RESOURCE_NOTES_H

#include "base/str.h"

struct dv_arena;
struct dv_decode_notes;
struct dv_json;
struct dv_message;

/* Notes a field that the table does not have. `notes` may be NULL. */
void dv_note_unknown(struct dv_decode_notes *notes, const struct dv_json *member,
                     struct dv_arena *arena);
/* Notes a repeated field, when its key was there before. */
void dv_note_repeated(struct dv_decode_notes *notes, const struct dv_json *member,
                      struct dv_arena *arena);

/* What to write in place of a field that was taken out of the API; NULL: it is unknown like any
 * other. `object` contains the field. */
const char *dv_removed_advice(const struct dv_message *message, const struct dv_json *object,
                              dv_str name);

#endif
