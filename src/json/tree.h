/* tree.h - the nodes themselves, for the files of this module.
 *
 * Children are a list through `next`. The last child's `next` is its parent, so that a walk over a
 * tree needs no stack and a node knows its path without a pointer of its own for it:
 *
 *     object -first-> a -next-> b -next-> c (is_last) -next-> object
 */
#ifndef DV_JSON_TREE_H
#define DV_JSON_TREE_H

#include "base/err.h"
#include "json/json.h"

#define DV_JSON_COLUMN_MAX 0xffffffu

struct dv_json {
    struct dv_json *next; /* the next sibling; of the last child, the parent; of a root, NULL */
    const char *key;      /* NULL unless it is a member */
    union {
        const char *text;      /* strings and numbers */
        struct dv_json *first; /* arrays and objects; NULL when empty */
    };
    uint32_t key_n;
    uint32_t n; /* bytes of text; children; 1 for true */
    uint32_t line;
    uint32_t column : 24;
    uint32_t kind : 3; /* enum dv_json_kind */
    uint32_t is_last : 1;
    uint32_t is_repeated : 1;
    uint32_t is_merged : 1;  /* YAML: came through <<, so repeating it is no mistake */
    uint32_t is_merge : 1;   /* YAML: the value of <<, until its object is complete */
    uint32_t is_dropped : 1; /* a later one has its key: about to be unlinked */
};

/* The text that a document was read from, for dv_json_source. Shared by all its containers, so that
 * an edit anywhere is known everywhere. */
struct dv_json_text {
    const char *p;
    bool is_edited;
};

/* An array or object. A node never changes its kind. */
struct dv_json_container {
    struct dv_json node;
    struct dv_json *last;
    struct dv_json_index *index; /* large objects only */
    struct dv_json_text *text;   /* NULL unless it was read from JSON */
    uint32_t start;              /* of its brackets in the text */
    uint32_t end;
};

_Static_assert(sizeof(struct dv_json) == 40, "json.h tells how large a node is");
_Static_assert(sizeof(struct dv_json_container) == 72, "json.h tells how large a container is");

static inline uint32_t dv_json_clamp_column(size_t column)
{
    return column < DV_JSON_COLUMN_MAX ? (uint32_t)column : DV_JSON_COLUMN_MAX;
}

/* Places a member whose value begins on a later line at its key: there people look for it. */
static inline void dv_json_place_at_key(struct dv_json *node, uint32_t line, uint32_t column)
{
    if (node->line <= line)
        return;
    node->line = line;
    node->column = column & DV_JSON_COLUMN_MAX;
}

static inline bool dv_json_is_container(const struct dv_json *node)
{
    return node->kind >= DV_JSON_ARRAY;
}

/* Makes a node of this kind, large enough for it; everything else is zero. */
struct dv_json *dv_json_new(enum dv_json_kind kind, struct dv_arena *arena);
/* Adds at the end, and to no index: for readers, which seal objects when they are complete. */
void dv_json_link(struct dv_json *container, struct dv_json *child);
/* Takes the first child out, with its key; NULL when there is none. An index is not told. */
struct dv_json *dv_json_shift(struct dv_json *container);
/* Ends the reading of an object: finds keys that are there twice, drops all but the last (or
 * fails, naming the key and both lines), and indexes a large one. */
DV_CHECKED bool dv_json_seal(struct dv_json *object, bool refuse_duplicates, struct dv_arena *arena,
                             struct dv_err *err);

/* Indexes an object whose keys differ, when it is large. */
void dv_json_index_members(struct dv_json *object, struct dv_arena *arena);

/* What a copy may take, counted down; the text stays shared. It limits aliases in YAML. */
struct dv_json_budget {
    size_t nodes;
    size_t depth;
};
/* Copies a node; NULL when the budget does not suffice. */
struct dv_json *dv_json_copy_within(const struct dv_json *node, struct dv_json_budget *budget,
                                    struct dv_arena *arena);

/* Orders the members of every object under `node`. The order is by bytes, or kubectl's. */
enum dv_json_order {
    DV_JSON_BY_BYTES,
    DV_JSON_NATURAL,
};
void dv_json_sort(struct dv_json *node, enum dv_json_order order);

/* The limits of a reader, with its defaults where `opts` (or NULL) says nothing. */
struct dv_json_opts dv_json_fill_opts(const struct dv_json_opts *opts, uint32_t depth_max);
DV_CHECKED bool dv_json_check_size(dv_str text, const struct dv_json_opts *opts,
                                   struct dv_err *err);

/* "line 3, column 7: " + the message. Returns false. */
bool dv_json_fail_at(uint32_t line, uint32_t column, enum dv_code code, struct dv_err *err,
                     const char *fmt, ...) DV_PRINTF(5, 6);

/* Text: text.c. What is UTF-8: `s` itself, or a copy in `arena` with U+FFFD for each byte that is
 * not. */
dv_str dv_json_to_utf8(dv_str s, struct dv_arena *arena);

/* Inside a JSON string: the first byte that is a quote, a backslash, a control character or not
 * ASCII; or the end. */
const char *dv_json_skip_plain(const char *at, const char *end);
int32_t dv_json_read_hex4(const char *at, const char *end); /* four digits, or -1 */
/* Unescapes the text between two quotes, which is known to be right except for `n_bad` bytes that
 * are not UTF-8: those become U+FFFD. */
dv_str dv_json_unescape(dv_str s, size_t n_bad, struct dv_arena *arena);

bool dv_json_is_number(dv_str text); /* as JSON writes them: json_read.c */
/* Numbers: json_number.c. A JSON number's text, or what else strtod reads. */
double dv_json_text_to_double(dv_str text);
/* Prints a finite double as Go does in JSON: "1e+21", "0.000001", "-0". */
#define DV_JSON_DOUBLE_BYTES 48
void dv_json_double_to_text(double value, char text[DV_JSON_DOUBLE_BYTES]);
/* Prints a 32-bit float as Go does with %g and the fewest digits: Kubernetes does that with a YAML
 * key that is one ("1e+06", ".inf"). */
void dv_json_float_to_key(double value, char text[DV_JSON_DOUBLE_BYTES]);

#endif
