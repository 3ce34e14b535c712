/* alloc_text.h - how objects come into libdavit, and answers leave it. */
#ifndef DV_LIB_ALLOC_TEXT_H
#define DV_LIB_ALLOC_TEXT_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct davit_error;
struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_kind;
struct dv_message;

/* The longest answer: an explanation of ten thousand devices is about a megabyte. */
#define DV_LIB_ANSWER_BYTES_MAX (256u << 20)

/* Copies the error to the caller's, which may be NULL. Returns false. */
bool dv_lib_tell(struct davit_error *error, const struct dv_err *err);
/* Copies the buffer's text to the heap, for davit_free; NULL when it did not fit. */
char *dv_lib_answer(const struct dv_buf *buf, struct dv_err *err);

/* Parses an object. NULL: the text is not JSON, or no object. */
struct dv_json *dv_lib_parse(const char *text, struct dv_arena *arena, struct dv_err *err);
/* Finds the kind that an object names; NULL without an error when we do not know it. */
DV_CHECKED bool dv_lib_kind(const struct dv_json *json, const struct dv_kind **kind,
                            const struct dv_message **message, struct dv_err *err);
/* Reads an object of a kind, which it may name itself; with its defaults, in `arena`. */
void *dv_lib_read(const struct dv_json *json, const struct dv_kind *kind, struct dv_arena *arena,
                  struct dv_err *err);
/* Reads a part of an object. */
void *dv_lib_read_part(const struct dv_json *json, const struct dv_message *message,
                       struct dv_arena *arena, struct dv_err *err);

#endif
