/* fuzz_engine.c - words, a line each, the first one an engine's name or empty: a command that is
 * read keeps all its words in their order when devices are added, what is added stands before the
 * first word behind the options, and the new command is read like the old one. */
#include "engines/engines.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/oci.h"

#define WORDS_MAX 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dv_cdi_annotation env[] = {
    {DV_STR_INIT("DAVIT_A"), DV_STR_INIT("1")},
};
static const struct dv_oci_device devices[] = {
    {DV_STR_INIT("/dev/a"), DV_STR_INIT("/dev/a"), DV_STR_INIT("rw")},
};
static const struct dv_oci_options options = {
    .env = env, .n_env = 1, .devices = devices, .n_devices = 1};

/* The words from `rest` on are the last ones, and those before are there in their order. */
static void check_words(const struct dv_engine_command *command, const struct dv_engine_plan *plan)
{
    size_t n_behind = command->n_words - command->rest;
    size_t found = 0;

    assert(plan->n_words >= command->n_words);
    for (size_t i = 0; i < n_behind; i++)
        assert(dv_str_eq(plan->words[plan->n_words - n_behind + i],
                         command->words[command->rest + i]));
    for (size_t i = 0; i < plan->n_words && found < command->n_words; i++)
        found += dv_str_eq(plan->words[i], command->words[found]);
    assert(found == command->n_words);
}

static void check_again(const struct dv_engine_command *command, const struct dv_engine_plan *plan,
                        dv_str forced)
{
    size_t n_added = plan->n_words - command->n_words;
    struct dv_engine_command again;
    struct dv_err err;
    bool is_read = dv_engine_parse(plan->words, plan->n_words, forced, &again, &err);

    assert(is_read);
    if (command->kind == DV_ENGINE_PLAIN) /* "env" may be there now */
        return;
    assert(again.kind == command->kind && again.rest == command->rest + n_added);
    assert(again.is_detached == command->is_detached && again.options == command->options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_engine_grant grant = {.options = &options};
    const struct dv_engine_settings settings = {0};
    const struct dv_engine_facts facts = {
        .version = dv_engine_version_parse((dv_str){(const char *)data, size})};
    dv_str rest = {(const char *)data, size};
    struct dv_engine_command command;
    struct dv_engine_plan plan;
    dv_str words[WORDS_MAX];
    struct dv_err err;
    dv_str forced;
    size_t n = 0;

    if (size == 0 || !dv_str_split(&rest, '\n', &forced))
        return 0;
    while (n < WORDS_MAX && rest.n > 0 && dv_str_split(&rest, '\n', &words[n]))
        n++;
    if (!dv_engine_parse(words, n, forced, &command, &err))
        return 0;
    assert(command.program < n && command.options <= command.rest && command.rest < n);
    if (!dv_engine_plan(&command, &facts, &grant, &settings, arena, &plan, &err))
        return 0;
    check_words(&command, &plan);
    check_again(&command, &plan, forced);
    return 0;
}
