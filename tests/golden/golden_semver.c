/* golden_semver.c - replays golden/semver: every text of parse.jsonl is read in all ways, every
 * pair of pairs.jsonl compared.
 *
 *     golden_semver DIR      DIR holds these files */
#include "number/number.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "jsonl.h"
#include "json/json.h"

/* What a version attribute may have. The parsers take longer ones. */
#define ATTRIBUTE_BYTES_MAX 64u

#define TEXT_BYTES_MAX 100000u

static void compare_u64(struct jsonl_record *record, const char *key, uint64_t got)
{
    jsonl_compare_str(record, key, dv_str_printf(record->arena, "%llu", (unsigned long long)got),
                      jsonl_str(record, key));
}

/* Identifiers between dots as the corpus has them: texts, or objects that say what is a number. */
static struct dv_json *identifiers(dv_str list, bool is_pre, struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);
    dv_str piece;
    uint64_t number;

    while (list.n > 0 && dv_str_split(&list, '.', &piece)) {
        struct dv_json *text = dv_json_new_str(piece, arena);
        struct dv_json *object = dv_json_new_object(arena);

        if (!is_pre) {
            dv_json_append(array, text);
            continue;
        }
        dv_json_set(object, DV_STR("text"), text, arena);
        dv_json_set(object, DV_STR("numeric"),
                    dv_json_new_bool(dv_str_to_u64(piece, &number), arena), arena);
        dv_json_append(array, object);
    }
    return array;
}

static void compare_parts(struct jsonl_record *record, const struct dv_version *version)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_version_print(version, &buf);
    jsonl_compare_str(record, "canonical", dv_buf_str(&buf), jsonl_str(record, "canonical"));
    compare_u64(record, "major", version->major);
    compare_u64(record, "minor", version->minor);
    compare_u64(record, "patch", version->patch);
    jsonl_compare_bool(record, "pre is equal",
                       dv_json_eq(identifiers(version->pre, true, record->arena),
                                  dv_json_get(record->json, DV_STR("pre"))),
                       true);
    jsonl_compare_bool(record, "build is equal",
                       dv_json_eq(identifiers(version->build, false, record->arena),
                                  dv_json_get(record->json, DV_STR("build"))),
                       true);
}

static void replay_parse(struct jsonl_record *record)
{
    dv_str text = jsonl_str(record, "s");
    struct dv_version version;
    struct dv_version tolerant;
    struct dv_err err;
    bool is_ok = dv_version_parse(text, &version, &err);

    jsonl_compare_bool(record, "ok", is_ok, jsonl_bool(record, "ok"));
    jsonl_compare_bool(record, "celIsSemver", is_ok, jsonl_bool(record, "celIsSemver"));
    jsonl_compare_bool(record, "celIsSemverNormalized",
                       dv_version_parse_tolerant(text, &tolerant, &err),
                       jsonl_bool(record, "celIsSemverNormalized"));
    jsonl_compare_bool(record, "attributeValid",
                       dv_version_is_well_formed(text) && text.n <= ATTRIBUTE_BYTES_MAX,
                       jsonl_bool(record, "attributeValid"));
    if (is_ok && !record->has_failed)
        compare_parts(record, &version);
}

static void replay_pair(struct jsonl_record *record)
{
    dv_str text_a = jsonl_str(record, "a");
    dv_str text_b = jsonl_str(record, "b");
    struct dv_version a;
    struct dv_version b;
    struct dv_err err;
    bool is_ok = dv_version_parse(text_a, &a, &err) && dv_version_parse(text_b, &b, &err);

    jsonl_compare_bool(record, "ok", is_ok, true);
    if (!is_ok)
        return;
    jsonl_compare_i64(record, "cmp", dv_version_cmp(&a, &b), jsonl_i64(record, "cmp"));
    jsonl_compare_bool(record, "celEqual", dv_version_cmp(&a, &b) == 0,
                       jsonl_bool(record, "celEqual"));
    jsonl_compare_bool(record, "constraintEqual", dv_str_eq(text_a, text_b),
                       jsonl_bool(record, "constraintEqual"));
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"parse.jsonl", {"s", "celIsSemver"}, {NULL}},   replay_parse},
        {{"pairs.jsonl", {"a", "b", "celEqual"}, {NULL}}, replay_pair },
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
