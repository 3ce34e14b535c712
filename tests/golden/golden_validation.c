/* golden_validation.c - replays golden/validation: objects that the API accepts or refuses, and
 * names at different places.
 *
 *     golden_validation DIR      DIR holds objects.jsonl, names.jsonl and
 *                                extended-resource-names.jsonl */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "jsonl.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "json/json.h"

/* Only what is compared of a problem. */
struct told {
    dv_str field;
    dv_str type;
};

static const struct dv_kind *kind_of(struct jsonl_record *record)
{
    dv_str name = jsonl_str(record, "kind");

    for (size_t i = 0; i < DV_N_KINDS; i++)
        if (dv_str_eq(dv_kind((enum dv_kind_id)i)->name, name))
            return dv_kind((enum dv_kind_id)i);
    printf("%s:%u: no kind %.*s\n", record->file, record->line, DV_FMT(name));
    exit(2);
}

/* Decoded, with its defaults; NULL when it is not there or does not fit its type. */
static void *read_object(struct jsonl_record *record, const struct dv_kind *kind, const char *key,
                         struct dv_err *err)
{
    const struct dv_json *json = dv_json_get(record->json, dv_str_from_c(key));
    const struct dv_api_version *version = &kind->versions[0];
    const struct dv_time now = {.seconds = 1767225600, .is_set = true};
    void *value;

    if (!json)
        return NULL;
    value = dv_arena_alloc(record->arena, version->message->size, version->message->align);
    if (!dv_decode_json(version->message, json, DV_UNKNOWN_DROP, record->arena, value, NULL, err))
        return NULL;
    dv_default(kind, version, value, now, record->arena);
    return value;
}

static enum dv_operation operation_of(struct jsonl_record *record)
{
    dv_str name = jsonl_str(record, "op");

    if (dv_str_eq(name, DV_STR("create")))
        return DV_CREATE;
    return dv_str_eq(name, DV_STR("update")) ? DV_UPDATE : DV_UPDATE_STATUS;
}

static int compare_told(const void *a, const void *b)
{
    const struct told *one = a;
    const struct told *other = b;
    int order = dv_str_cmp(one->field, other->field);

    return order != 0 ? order : dv_str_cmp(one->type, other->type);
}

static dv_str join(struct told *told, size_t n, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    qsort(told, n, sizeof(*told), compare_told);
    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(arena, "%.*s %.*s:%.*s", DV_FMT(text), DV_FMT(told[i].field),
                             DV_FMT(told[i].type));
    return text;
}

static dv_str wanted_problems(const struct jsonl_record *record)
{
    const struct dv_json *errors = dv_json_get(record->json, DV_STR("errors"));
    struct told *told = DV_NEW_ARRAY(record->arena, struct told, dv_json_n(errors));
    size_t n = 0;
    struct dv_err err;

    for (const struct dv_json *error = dv_json_first(errors); error; error = dv_json_next(error)) {
        if (!dv_json_as_str(dv_json_get(error, DV_STR("field")), &told[n].field, &err) ||
            !dv_json_as_str(dv_json_get(error, DV_STR("type")), &told[n].type, &err)) {
            printf("%s:%u: %s\n", record->file, record->line, err.msg);
            exit(2);
        }
        n++;
    }
    return join(told, n, record->arena);
}

static dv_str found_problems(const struct dv_problems *problems)
{
    struct told *told = DV_NEW_ARRAY(problems->arena, struct told, problems->n);

    for (size_t i = 0; i < problems->n; i++)
        told[i] = (struct told){problems->v[i].field,
                                dv_str_from_c(dv_problem_reason(problems->v[i].type))};
    return join(told, problems->n, problems->arena);
}

static void replay_object(struct jsonl_record *record)
{
    struct dv_problems problems = {.arena = record->arena};
    struct dv_validation what = {.kind = kind_of(record), .operation = operation_of(record)};
    const char *class = "decode-error";
    struct dv_err err;

    what.value = read_object(record, what.kind, "object", &err);
    if (what.value) {
        what.old = read_object(record, what.kind, "oldObject", &err);
        dv_validate(&what, &problems);
        class = problems.n > 0 ? "invalid" : "valid";
    }
    jsonl_compare_str(record, "class", dv_str_from_c(class), jsonl_str(record, "class"));
    jsonl_compare_str(record, "errors", found_problems(&problems), wanted_problems(record));
}

/* -- Names ---------------------------------------------------------------------------------- */

/* Valid objects; "@" is where a name of that kind is. */
#define SLICE(spec) "{\"metadata\":{\"name\":\"s\"},\"spec\":{" spec "}}"
#define POOL "\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1}"
#define DEVICE(device)                                                                             \
    SLICE("\"driver\":\"d.example.com\",\"nodeName\":\"n\"," POOL ",\"devices\":[{" device "}]")
#define CLAIM(devices)                                                                             \
    "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\"},\"spec\":{\"devices\":{" devices "}}}"
#define REQUEST(request)                                                                           \
    CLAIM("\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"c\"" request "}}]")
#define CONSTRAINT(constraint)                                                                     \
    CLAIM("\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"c\"}}],"               \
          "\"constraints\":[{" constraint "}]")

static const struct {
    const char *name;
    enum dv_kind_id kind;
    const char *text;
} places[] = {
    {"driver",               DV_KIND_SLICE, SLICE("\"driver\":@,\"nodeName\":\"n\"," POOL)             },
    {"pool",                 DV_KIND_SLICE,
     SLICE("\"driver\":\"d\",\"nodeName\":\"n\",\"pool\":{\"name\":@,\"generation\":1,"
           "\"resourceSliceCount\":1}")                                                                },
    {"node",                 DV_KIND_SLICE, SLICE("\"driver\":\"d\",\"nodeName\":@," POOL)             },
    {"device",               DV_KIND_SLICE, DEVICE("\"name\":@")                                       },
    {"attribute",            DV_KIND_SLICE, DEVICE("\"name\":\"d\",\"attributes\":{@:{\"int\":1}}")    },
    {"capacity",             DV_KIND_SLICE, DEVICE("\"name\":\"d\",\"capacity\":{@:{\"value\":\"1\"}}")},
    {"counterSet",           DV_KIND_SLICE,
     DEVICE("\"name\":\"d\",\"consumesCounters\":[{\"counterSet\":@,\"counters\":{\"c\":"
            "{\"value\":\"1\"}}}]")                                                                    },
    {"counter",              DV_KIND_SLICE,
     DEVICE("\"name\":\"d\",\"consumesCounters\":[{\"counterSet\":\"s\",\"counters\":{@:"
            "{\"value\":\"1\"}}}]")                                                                    },
    {"taintKey",             DV_KIND_SLICE,
     DEVICE("\"name\":\"d\",\"taints\":[{\"key\":@,\"effect\":\"NoSchedule\"}]")                       },
    {"taintValue",           DV_KIND_SLICE,
     DEVICE("\"name\":\"d\",\"taints\":[{\"key\":\"k\",\"value\":@,\"effect\":\"None\"}]")             },
    {"bindingCondition",     DV_KIND_SLICE,
     DEVICE("\"name\":\"d\",\"bindingConditions\":[@],\"bindingFailureConditions\":"
            "[\"other.example/failed\"]")                                                              },
    {"slice",                DV_KIND_SLICE,
     "{\"metadata\":{\"name\":@},\"spec\":{\"driver\":\"d\",\"nodeName\":\"n\"," POOL "}}"             },
    {"claim",                DV_KIND_CLAIM,
     "{\"metadata\":{\"name\":@,\"namespace\":\"ns\"},\"spec\":{\"devices\":{}}}"                      },
    {"class",                DV_KIND_CLASS, "{\"metadata\":{\"name\":@},\"spec\":{}}"                  },
    {"request",              DV_KIND_CLAIM,
     CLAIM("\"requests\":[{\"name\":@,\"exactly\":{\"deviceClassName\":\"c\"}}]")                      },
    {"subrequest",           DV_KIND_CLAIM,
     CLAIM("\"requests\":[{\"name\":\"r\",\"firstAvailable\":[{\"name\":@,\"deviceClassName\":"
           "\"c\"}]}]")                                                                                },
    {"className",            DV_KIND_CLAIM,
     CLAIM("\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":@}}]")                      },
    {"matchAttribute",       DV_KIND_CLAIM, CONSTRAINT("\"matchAttribute\":@")                         },
    {"distinctAttribute",    DV_KIND_CLAIM, CONSTRAINT("\"distinctAttribute\":@")                      },
    {"extendedResourceName", DV_KIND_CLASS,
     "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"extendedResourceName\":@}}"                           },
    {"tolerationKey",        DV_KIND_CLAIM,
     REQUEST(",\"tolerations\":[{\"key\":@,\"operator\":\"Exists\"}]")                                 },
};

static bool is_accepted(struct jsonl_record *record, enum dv_kind_id id, const char *text,
                        dv_str name)
{
    struct dv_problems problems = {.arena = record->arena};
    struct dv_validation what = {.kind = dv_kind(id), .operation = DV_CREATE};
    const struct dv_api_version *version = &what.kind->versions[0];
    const struct dv_time now = {.seconds = 1767225600, .is_set = true};
    dv_str rest = dv_str_from_c(text);
    size_t at = dv_str_find_char(rest, '@');
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_json *json;
    struct dv_err err;
    void *value;

    dv_buf_init(&buf, DV_JSON_BYTES_MAX);
    dv_buf_add(&buf, dv_str_slice(rest, 0, at));
    dv_buf_add_json(&buf, name);
    dv_buf_add(&buf, dv_str_slice(rest, at + 1, rest.n));
    json = dv_json_parse(dv_buf_str(&buf), NULL, record->arena, &err);
    value = dv_arena_alloc(record->arena, version->message->size, version->message->align);
    if (!json || !dv_decode_json(version->message, json, DV_UNKNOWN_DROP, record->arena, value,
                                 NULL, &err)) {
        printf("%s:%u: %s\n", record->file, record->line, err.msg);
        exit(2);
    }
    dv_default(what.kind, version, value, now, record->arena);
    what.value = value;
    dv_validate(&what, &problems);
    return problems.n == 0;
}

static void replay_name(struct jsonl_record *record)
{
    dv_str kind = jsonl_str(record, "kind");

    for (size_t i = 0; i < DV_COUNT(places); i++)
        if (dv_str_eq(dv_str_from_c(places[i].name), kind)) {
            jsonl_compare_bool(
                record, places[i].name,
                is_accepted(record, places[i].kind, places[i].text, jsonl_str(record, "name")),
                jsonl_bool(record, "valid"));
            return;
        }
    jsonl_compare_str(record, "kind", DV_STR("not known here"), kind);
}

static void replay_resource(struct jsonl_record *record)
{
    dv_str name = jsonl_str(record, "name");

    jsonl_compare_bool(record, "valid", dv_is_extended_resource_name(name),
                       jsonl_bool(record, "valid"));
    jsonl_compare_bool(record, "native", dv_is_native_resource_name(name),
                       jsonl_bool(record, "native"));
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"objects.jsonl", {"object", "op", "errors"}, {NULL}},                  replay_object  },
        {{"names.jsonl", {"kind", "name", "valid"}, {NULL}},                     replay_name    },
        {{"extended-resource-names.jsonl", {"name", "native", "valid"}, {NULL}}, replay_resource},
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
