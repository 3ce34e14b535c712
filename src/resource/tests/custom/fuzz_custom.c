/* fuzz_custom.c - a schema and an object, one a line.
 *
 * What was pruned once stays as it is; what a schema accepts it also accepts when it is read again;
 * and an update that changes nothing has no problems. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom/schema.h"
#include "resource/validate.h"
#include "json/json.h"

#define STEPS 200000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t n_problems(const struct dv_structural *schema, const struct dv_json *doc,
                         const struct dv_json *old, struct dv_arena *arena)
{
    struct dv_problems problems = {.arena = arena};

    dv_schema_check(schema, doc, old, NULL, STEPS, &problems);
    return problems.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str rest = {(const char *)data, size};
    const struct dv_json_opts opts = {.depth_max = 100};
    struct dv_problems problems = {.arena = arena};
    const struct dv_structural *schema;
    struct dv_json *once;
    struct dv_json *doc;
    struct dv_err err;
    dv_str line;

    if (!dv_str_split(&rest, '\n', &line))
        return 0;
    doc = dv_json_parse(line, &opts, arena, &err);
    schema = doc ? dv_schema_new(doc, NULL, arena, &problems) : NULL;
    doc = dv_json_parse(rest, &opts, arena, &err);
    if (!schema || !doc)
        return 0;
    once = dv_schema_prune(schema, doc, true, arena, NULL);
    if (!once)
        return 0; /* defaults make it too large */
    assert(dv_json_eq(once, dv_schema_prune(schema, once, true, arena, NULL)));
    assert(n_problems(schema, once, once, arena) == 0 || n_problems(schema, once, NULL, arena) > 0);
    assert(n_problems(schema, once, NULL, arena) ==
           n_problems(schema, dv_schema_prune(schema, once, true, arena, NULL), NULL, arena));
    return 0;
}
