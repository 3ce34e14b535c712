/* notes.h - what a decoder tells beside the value: fields that are unknown or repeated. */
#ifndef DV_RESOURCE_NOTES_H
#define DV_RESOURCE_NOTES_H

struct dv_arena;
struct dv_decode_notes;
struct dv_json;

/* `notes` may be NULL. */
void dv_note_unknown(struct dv_decode_notes *notes, const struct dv_json *member,
                     struct dv_arena *arena);
/* Only when its key was there before. */
void dv_note_repeated(struct dv_decode_notes *notes, const struct dv_json *member,
                      struct dv_arena *arena);

#endif
