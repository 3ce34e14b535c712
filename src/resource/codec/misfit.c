/* misfit.c - the first value of a document that its field cannot hold.
 *
 * The reference reads a document in its order and tells the first misfit by the name of the struct,
 * the path from the root (without places in lists and keys of maps) and the type of the field. */
#include "resource/misfit.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "number/number.h"
#include "resource/resource.h"
#include "json/json.h"

#define PATH_BYTES_MAX (64u << 10)

struct search {
    struct dv_arena *arena;
    struct dv_buf path;
    dv_str *why;
};

/* Where a value stands: in the field of a struct. */
struct place {
    const struct dv_message *owner;
    const struct dv_field *field;
};

/* ---- texts ---- */

/* "v1" of "io.k8s.api.core.v1" */
static dv_str package_name(dv_str package)
{
    size_t at = package.n;

    while (at > 0 && package.p[at - 1] != '.')
        at--;
    return dv_str_slice(package, at, package.n);
}

static void add_type(const struct dv_field *field, struct dv_buf *buf)
{
    static const char *const names[] = {
        [DV_TYPE_STRING] = "string",
        [DV_TYPE_BOOL] = "bool",
        [DV_TYPE_INT32] = "int32",
        [DV_TYPE_INT64] = "int64",
        [DV_TYPE_TIME] = "v1.Time",
        [DV_TYPE_MICROTIME] = "v1.MicroTime",
        [DV_TYPE_QUANTITY] = "resource.Quantity",
        [DV_TYPE_BYTES] = "[]uint8",
        [DV_TYPE_RAW] = "runtime.RawExtension",
        [DV_TYPE_INT_OR_STR] = "intstr.IntOrString",
        [DV_TYPE_STRINGS] = "[]string",
    };

    if (field->type == DV_TYPE_MESSAGE)
        dv_buf_printf(buf, "%.*s.%.*s", DV_FMT(package_name(field->message->package)),
                      DV_FMT(field->message->name));
    else
        dv_buf_add_c(buf, names[field->type]);
}

/* `prefix` is "[]" or "map[string]" for the list or map as a whole. */
static bool misfit(struct search *search, const struct place *place, const char *value,
                   const char *prefix)
{
    struct dv_buf buf;

    dv_buf_init(&buf, PATH_BYTES_MAX);
    if (place->owner)
        dv_buf_printf(&buf, "json: cannot unmarshal %s into Go struct field %.*s.%s of type %s",
                      value, DV_FMT(place->owner->name), dv_buf_c(&search->path), prefix);
    else
        dv_buf_printf(&buf, "json: cannot unmarshal %s into Go value of type %s", value, prefix);
    add_type(place->field, &buf);
    *search->why = dv_str_copy(dv_buf_str(&buf), search->arena);
    dv_buf_fini(&buf);
    return true;
}

static bool say(struct search *search, dv_str why)
{
    *search->why = why;
    return true;
}

/* ---- single values ---- */

static bool is_quantity_text(dv_str text)
{
    const dv_str suffixes = DV_STR("eEinumkKMGTP");
    size_t at = 0;
    size_t n_digits = 0;

    if (at < text.n && (text.p[at] == '+' || text.p[at] == '-'))
        at++;
    for (; at < text.n && ((text.p[at] >= '0' && text.p[at] <= '9') || text.p[at] == '.'); at++)
        n_digits++;
    while (at < text.n && dv_str_find_char(suffixes, text.p[at]) < suffixes.n)
        at++;
    if (at < text.n && (text.p[at] == '+' || text.p[at] == '-'))
        at++;
    while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9')
        at++;
    return n_digits > 0 && at == text.n;
}

static bool is_quantity_misfit(struct search *search, const struct dv_json *node)
{
    struct dv_quantity quantity;
    struct dv_err err;
    dv_str text = DV_STR_NONE;

    if (dv_json_is(node, DV_JSON_NUMBER))
        text = dv_json_number_text(node);
    else if (dv_json_is(node, DV_JSON_STRING) && !dv_json_as_str(node, &text, &err))
        return false;
    if (dv_quantity_parse(text, search->arena, &quantity, &err))
        return false;
    return say(search, is_quantity_text(text)
                           ? DV_STR("unable to parse quantity's suffix")
                           : DV_STR("quantities must match the regular expression "
                                    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"));
}

static bool is_time_misfit(struct search *search, const struct place *place,
                           const struct dv_json *node)
{
    struct dv_err err;
    dv_str text;

    if (!dv_json_is(node, DV_JSON_STRING) || !dv_json_as_str(node, &text, &err))
        return say(search, dv_str_printf(search->arena,
                                         "json: cannot unmarshal %s into Go value of type string",
                                         dv_json_go_name(dv_json_kind(node))));
    return dv_misfit_time(text, place->field->type == DV_TYPE_MICROTIME, search->arena,
                          search->why);
}

static bool is_number_misfit(struct search *search, const struct place *place,
                             const struct dv_json *node)
{
    bool is_small = place->field->type == DV_TYPE_INT32;
    struct dv_err err;
    int64_t value;

    if (!dv_json_is(node, DV_JSON_NUMBER))
        return misfit(search, place, dv_json_go_name(dv_json_kind(node)), "");
    if (dv_json_as_i64(node, &value, &err) &&
        (!is_small || (value >= INT32_MIN && value <= INT32_MAX)))
        return false;
    return misfit(
        search, place,
        dv_str_to_c(dv_str_printf(search->arena, "number %.*s", DV_FMT(dv_json_number_text(node))),
                    search->arena),
        "");
}

static bool is_struct_misfit(struct search *search, const struct dv_message *message,
                             const struct dv_json *object);

static bool is_value_misfit(struct search *search, const struct place *place,
                            const struct dv_json *node)
{
    enum dv_json_kind wanted = DV_JSON_STRING;

    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    switch ((enum dv_type)place->field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
        break;
    case DV_TYPE_BOOL:
        wanted = DV_JSON_BOOL;
        break;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return is_number_misfit(search, place, node);
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return is_time_misfit(search, place, node);
    case DV_TYPE_QUANTITY:
        return is_quantity_misfit(search, node);
    case DV_TYPE_MESSAGE:
        if (dv_json_is(node, DV_JSON_OBJECT))
            return is_struct_misfit(search, place->field->message, node);
        wanted = DV_JSON_OBJECT;
        break;
    case DV_TYPE_RAW:
    case DV_TYPE_INT_OR_STR:
    case DV_TYPE_STRINGS:
        return false;
    }
    return !dv_json_is(node, wanted) &&
           misfit(search, place, dv_json_go_name(dv_json_kind(node)), "");
}

/* ---- structs ---- */

static bool is_field_misfit(struct search *search, const struct place *place,
                            const struct dv_json *node)
{
    bool is_list = place->field->shape == DV_SHAPE_LIST;
    const struct dv_json *child;

    if (dv_json_is(node, DV_JSON_NULL))
        return false;
    if (!is_list && place->field->shape != DV_SHAPE_MAP)
        return is_value_misfit(search, place, node);
    if (!dv_json_is(node, is_list ? DV_JSON_ARRAY : DV_JSON_OBJECT))
        return misfit(search, place, dv_json_go_name(dv_json_kind(node)),
                      is_list ? "[]" : "map[string]");
    for (child = dv_json_first(node); child; child = dv_json_next(child))
        if (is_value_misfit(search, place, child))
            return true;
    return false;
}

/* The struct that has the field: it may be one whose fields stand in this one's text. */
static const struct dv_message *owner_of(const struct dv_message *message,
                                         const struct dv_field *field)
{
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *inner = &message->fields[i];

        if (inner == field)
            return message;
        if (inner->shape == DV_SHAPE_INLINE && field >= inner->message->fields &&
            field < inner->message->fields + inner->message->n_fields)
            return inner->message;
    }
    return message;
}

static bool is_struct_misfit(struct search *search, const struct dv_message *message,
                             const struct dv_json *object)
{
    const struct dv_json *child;

    for (child = dv_json_first(object); child; child = dv_json_next(child)) {
        const struct dv_field *field = dv_message_field(message, dv_json_key(child), NULL);
        struct place place = {message, field};
        size_t n = search->path.n;

        if (!field)
            continue;
        place.owner = owner_of(message, field);
        dv_buf_printf(&search->path, "%s%.*s", n ? "." : "", DV_FMT(field->name));
        if (is_field_misfit(search, &place, child))
            return true;
        search->path.n = n; /* the path of the parent again */
        search->path.p[n] = '\0';
    }
    return false;
}

bool dv_misfit_find(const struct dv_message *message, const struct dv_json *doc,
                    struct dv_arena *arena, dv_str *why)
{
    const struct dv_field root = {.type = DV_TYPE_MESSAGE, .message = message};
    struct place place = {NULL, &root};
    struct search search = {.arena = arena, .why = why};
    bool is_found;

    dv_buf_init(&search.path, PATH_BYTES_MAX);
    is_found = is_value_misfit(&search, &place, doc);
    dv_buf_fini(&search.path);
    return is_found;
}

/* ---- times ---- */

/* The parts of a time in their order: digits, or a fixed text. */
static const struct part {
    const char *layout;
    size_t n_digits; /* 0: the layout itself */
    uint64_t least;
    uint64_t most;
    const char *what; /* that may be out of range */
} parts[] = {
    {"2006", 4, 0, 9999, "year"  },
    {"-",    0, 0, 0,    NULL    },
    {"01",   2, 1, 12,   "month" },
    {"-",    0, 0, 0,    NULL    },
    {"02",   2, 1, 31,   "day"   },
    {"T",    0, 0, 0,    NULL    },
    {"15",   2, 0, 23,   "hour"  },
    {":",    0, 0, 0,    NULL    },
    {"04",   2, 0, 59,   "minute"},
    {":",    0, 0, 0,    NULL    },
    {"05",   2, 0, 59,   "second"},
};

struct time_text {
    dv_str text;
    dv_str rest;
    const char *layout;
    struct dv_arena *arena;
    dv_str *why;
};

static bool bad_time(const struct time_text *time, const char *element)
{
    *time->why = dv_str_printf(time->arena,
                               "parsing time \"%.*s\" as \"%s\": cannot parse "
                               "\"%.*s\" as \"%s\"",
                               DV_FMT(time->text), time->layout, DV_FMT(time->rest), element);
    return true;
}

static bool is_part_bad(struct time_text *time, const struct part *part)
{
    dv_str layout = dv_str_from_c(part->layout);
    dv_str piece = dv_str_slice(time->rest, 0, part->n_digits ? part->n_digits : layout.n);
    uint64_t value;

    if (part->n_digits == 0 ? !dv_str_eq(piece, layout)
                            : piece.n < part->n_digits || !dv_str_to_u64(piece, &value))
        return bad_time(time, part->layout);
    if (part->n_digits && (value < part->least || value > part->most)) {
        *time->why = dv_str_printf(time->arena, "parsing time \"%.*s\": %s out of range",
                                   DV_FMT(time->text), part->what);
        return true;
    }
    time->rest = dv_str_slice(time->rest, piece.n, time->rest.n);
    return false;
}

/* Whether a fraction is wrong: a point and digits, exactly six where microseconds are wanted. */
static bool is_fraction_bad(struct time_text *time, bool with_micros)
{
    size_t n = 1;

    if (!time->rest.n || time->rest.p[0] != '.')
        return with_micros && bad_time(time, ".000000");
    while (n < time->rest.n && time->rest.p[n] >= '0' && time->rest.p[n] <= '9')
        n++;
    if (with_micros && n != 7)
        return bad_time(time, ".000000");
    time->rest = dv_str_slice(time->rest, n, time->rest.n);
    return false;
}

static bool is_zone_bad(struct time_text *time)
{
    dv_str zone = time->rest;
    bool is_offset = zone.n >= 6 && (zone.p[0] == '+' || zone.p[0] == '-') && zone.p[3] == ':';
    size_t n = zone.n && zone.p[0] == 'Z' ? 1 : is_offset ? 6 : 0;

    if (!n)
        return bad_time(time, "Z07:00");
    time->rest = dv_str_slice(zone, n, zone.n);
    if (!time->rest.n)
        return false;
    *time->why = dv_str_printf(time->arena, "parsing time \"%.*s\": extra text: \"%.*s\"",
                               DV_FMT(time->text), DV_FMT(time->rest));
    return true;
}

bool dv_misfit_time(dv_str text, bool with_micros, struct dv_arena *arena, dv_str *why)
{
    struct time_text time = {
        text, text, with_micros ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00",
        arena, why};

    for (size_t i = 0; i < DV_COUNT(parts); i++)
        if (is_part_bad(&time, &parts[i]))
            return true;
    return is_fraction_bad(&time, with_micros) || is_zone_bad(&time);
}
