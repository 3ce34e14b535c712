/* json.h - one document type for JSON and YAML, in and out.
 *
 * A document is a tree of nodes in an arena: null, boolean, number, string, array, object. Members
 * keep their order, numbers keep their text (so a round trip is exact), and a node that was read
 * knows its line, its column and, through its place in the tree, its path:
 *
 *     const struct dv_json *meta = dv_json_require(doc, DV_STR("metadata"), err);
 *     const struct dv_json *name = dv_json_get(meta, DV_STR("name"));    NULL when it is absent
 *
 *     if (!meta || (name && !dv_json_as_str(name, &pod->name, err)))
 *         return false;    "line 4, column 9: metadata.name: expected a string, got a number"
 *
 * Text in a tree is always UTF-8 and may hold NUL. A tree is plain data: any thread may read it
 * while none changes it. `const` means that this call does not change the node; children come back
 * without it, as from strchr, so that the same calls serve reading and editing. No function here
 * recurses, however deep a tree is. */
#ifndef DV_JSON_H
#define DV_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_yaml_stream;

enum dv_json_kind {
    DV_JSON_NULL,
    DV_JSON_BOOL,
    DV_JSON_NUMBER,
    DV_JSON_STRING,
    DV_JSON_ARRAY,
    DV_JSON_OBJECT,
};

/* -- Reading text --------------------------------------------------------------------------- */

/* The limits of a reader unless told otherwise. A list of 5,000 slices with 8 devices each is about
 * 11 MB and 750,000 nodes; a node takes 40 bytes, an array or object 72. */
#define DV_JSON_BYTES_MAX (64u * 1024u * 1024u)
#define DV_JSON_NODES_MAX (4u * 1024u * 1024u)
/* Go's own limit for JSON. libyaml's work for a token grows with the number of open brackets, so
 * YAML gets less: no Kubernetes object comes near. */
#define DV_JSON_DEPTH_MAX 10000u
#define DV_YAML_DEPTH_MAX 100u

/* Zeros, or a NULL pointer where these are asked for, mean the defaults. */
struct dv_json_opts {
    size_t bytes_max;   /* of the text */
    size_t nodes_max;   /* of the text or, with YAML, of the whole stream */
    uint32_t depth_max; /* arrays and objects inside each other */
    /* Refuse an object that has a key twice. Otherwise the last one counts, and
     * dv_json_is_repeated tells. */
    bool refuse_duplicates;
    /* Read bytes that are not UTF-8 as U+FFFD inside strings, as Go does, rather than refuse the
     * text. JSON only: kubelet's own state files are read so. */
    bool replace_bad_utf8;
    /* Tell of a member where its value begins, as Go's readers do, and not where its key is when
     * that is on an earlier line. */
    bool places_values;
};

/* Parses one JSON value (RFC 8259) with nothing but blanks around it. Keeps `text`: strings without
 * escapes and numbers stay where they are, so it must live as long as the tree; copy it into the
 * arena first when it does not. A lone surrogate escape reads as U+FFFD, as in Go.
 * DV_INVALID_ARGUMENT: not JSON. DV_RESOURCE_EXHAUSTED: over a limit. */
struct dv_json *dv_json_parse(dv_str text, const struct dv_json_opts *opts, struct dv_arena *arena,
                              struct dv_err *err);

/* Parses one YAML document; keeps nothing of `text`. No document at all reads as null, a
 * second one is refused. The meaning of scalars, keys, tags and merges follows Kubernetes:
 * see yaml_scalar.c. */
struct dv_json *dv_yaml_parse(dv_str text, const struct dv_json_opts *opts, struct dv_arena *arena,
                              struct dv_err *err);

/* The documents of a YAML text, one after the other. Keeps `text` until it is freed. */
struct dv_yaml_stream *dv_yaml_stream_new(dv_str text, const struct dv_json_opts *opts,
                                          struct dv_err *err);
void dv_yaml_stream_free(struct dv_yaml_stream *stream);   /* NULL is fine */
void dv_yaml_stream_freep(struct dv_yaml_stream **stream); /* for DV_CLEANUP */
/* The next document, into `arena`; NULL at the end. An empty one between two `---` is null. After
 * an error there is no next. */
DV_CHECKED bool dv_yaml_stream_next(struct dv_yaml_stream *stream, struct dv_arena *arena,
                                    struct dv_json **doc, struct dv_err *err);

/* -- Looking at a tree ---------------------------------------------------------------------- */

enum dv_json_kind dv_json_kind(const struct dv_json *node);
bool dv_json_is(const struct dv_json *node, enum dv_json_kind kind); /* false for NULL */
const char *dv_json_kind_name(enum dv_json_kind kind);               /* "a string" */
const char *dv_json_go_name(enum dv_json_kind kind);                 /* "string", as Go says it */
/* Whether Go's encoding/json takes a key for the field of that name: it folds case by Unicode's
 * simple rule, so that two letters outside of ASCII are an S and a K. */
bool dv_json_is_go_field(dv_str key, const char *name);
/* Where its value begins, or its key, when the value of a member begins on a later line (unless
 * the reader's options say otherwise); from 1, counted in characters; 0 for what was not read. A
 * column past 16,777,215 stays there. */
uint32_t dv_json_line(const struct dv_json *node);
/* The text of an array or object as it was read, blanks and all; nothing for other nodes, for what
 * was not read from JSON, and for all of a document once something in it was edited. */
dv_str dv_json_source(const struct dv_json *node);
/* Whether the member's key was there before in the same object, and the earlier value was
 * dropped. */
bool dv_json_is_repeated(const struct dv_json *node);

size_t dv_json_n(const struct dv_json *node);   /* children; 0 for what has none, and for NULL */
dv_str dv_json_key(const struct dv_json *node); /* of a member; empty for others */
/* The first child, then its siblings in order; NULL at the end, when there is none, and for NULL.
 */
struct dv_json *dv_json_first(const struct dv_json *node);
struct dv_json *dv_json_next(const struct dv_json *node);
struct dv_json *dv_json_parent(const struct dv_json *node); /* walks the rest of the siblings */
/* The member of that key; NULL when absent, when `object` is something else, and when it is NULL;
 * so calls can be nested. Constant time in large objects. */
struct dv_json *dv_json_get(const struct dv_json *object, dv_str key);
struct dv_json *dv_json_at(const struct dv_json *array,
                           size_t i); /* walks there; NULL past the end */

/* The value, when the node is of that kind. Otherwise DV_INVALID_ARGUMENT with line, column, path
 * and what was expected; DV_OUT_OF_RANGE when it is a number that does not fit. 1.0 is no integer:
 * Go refuses it for one, too. */
DV_CHECKED bool dv_json_as_str(const struct dv_json *node, dv_str *value, struct dv_err *err);
DV_CHECKED bool dv_json_as_i64(const struct dv_json *node, int64_t *value, struct dv_err *err);
DV_CHECKED bool dv_json_as_u64(const struct dv_json *node, uint64_t *value, struct dv_err *err);
DV_CHECKED bool dv_json_as_bool(const struct dv_json *node, bool *value, struct dv_err *err);
dv_str dv_json_number_text(const struct dv_json *node); /* as it will be printed */
/* The member, or DV_INVALID_ARGUMENT naming the object and the key that it lacks. */
struct dv_json *dv_json_require(const struct dv_json *object, dv_str key, struct dv_err *err);
DV_CHECKED bool dv_json_expect(const struct dv_json *node, enum dv_json_kind kind,
                               struct dv_err *err);

/* Sets DV_INVALID_ARGUMENT: "line 4, column 9: spec.containers[0].name: " + the message; without
 * the position when the node was not read. Returns false. */
bool dv_json_fail(const struct dv_json *node, struct dv_err *err, const char *fmt, ...)
    DV_PRINTF(3, 4);

/* Same value: members in any order, numbers by value: 64-bit integers exactly, all else as doubles,
 * so that 1.0 is 1. */
bool dv_json_eq(const struct dv_json *a, const struct dv_json *b);

/* -- Building and editing ------------------------------------------------------------------- */

/* New nodes, in no container yet. Text is copied; bytes in it that are not UTF-8 become U+FFFD. */
struct dv_json *dv_json_new_null(struct dv_arena *arena);
struct dv_json *dv_json_new_bool(bool value, struct dv_arena *arena);
struct dv_json *dv_json_new_i64(int64_t value, struct dv_arena *arena);
struct dv_json *dv_json_new_u64(uint64_t value, struct dv_arena *arena);
struct dv_json *dv_json_new_double(double value, struct dv_arena *arena); /* finite; as Go prints */
struct dv_json *dv_json_new_str(dv_str value, struct dv_arena *arena);
struct dv_json *dv_json_new_array(struct dv_arena *arena);
struct dv_json *dv_json_new_strs(const dv_str *values, size_t n, struct dv_arena *arena);
/* Like dv_json_new_strs, or null when `values` is NULL: as Go writes a slice that is nil. */
struct dv_json *dv_json_new_strs_or_null(const dv_str *values, size_t n, struct dv_arena *arena);
struct dv_json *dv_json_new_object(struct dv_arena *arena);

/* These take `value`, which must be in no container and live as long as the tree: usually it is in
 * the same arena. */
/* Puts it where the member of that key is, or at the end. */
void dv_json_set(struct dv_json *object, dv_str key, struct dv_json *value, struct dv_arena *arena);
/* Like dv_json_set, for a key that the object does not have yet. Keeps `key`, which is UTF-8. */
void dv_json_add(struct dv_json *object, dv_str key, struct dv_json *value, struct dv_arena *arena);
void dv_json_append(struct dv_json *array, struct dv_json *value);
/* Inserts before element i; i may be the number of elements. */
void dv_json_insert(struct dv_json *array, size_t i, struct dv_json *value);
/* Puts `value` where `old` is, under its key. `old` is in no container afterwards. */
void dv_json_replace(struct dv_json *old, struct dv_json *value);
void dv_json_remove(struct dv_json *node); /* out of its container; costs its number of children */

/* Copies everything under `node`, text too; its line, column and order stay, its key does not. */
struct dv_json *dv_json_copy(const struct dv_json *node, struct dv_arena *arena);

/* -- Writing text --------------------------------------------------------------------------- */

struct dv_json_style {
    uint32_t indent;  /* JSON: spaces a level; 0 prints one line without blanks. kubectl has 4 */
    bool escape_html; /* JSON: < > & U+2028 U+2029 as \u003c and so on, as Go does by default */
    bool sort_keys;   /* JSON: by bytes, as Go. YAML: like kubectl, so that a2 comes before a10 */
};

/* Prints without a newline at the end. A NULL style is compact, in order, unescaped. When it gets
 * too long for the buffer it stops: ask dv_buf_check. */
void dv_json_print(const struct dv_json *node, const struct dv_json_style *style,
                   struct dv_buf *buf);
/* Block style, as kubectl prints it, and whatever is read back is equal. Ends with a newline; put
 * "---\n" between documents. Only `sort_keys` counts. */
void dv_yaml_print(const struct dv_json *node, const struct dv_json_style *style,
                   struct dv_buf *buf);

#endif
