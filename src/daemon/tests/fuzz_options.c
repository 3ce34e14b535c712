/* fuzz_options.c - the command line, a word in each line, and behind an empty line the file that
 * --config names.
 *
 * What is taken is within its bounds and holds no zero byte, since most of it becomes a path; and
 * words of the form --name=value say the same in a file. */
#include "daemon/daemon_options.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define WORDS_MAX 64
#define BYTES_MAX 8192u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct words {
    char *argv[WORDS_MAX + 1];
    int argc;
};

static void add_word(struct words *words, dv_str word, struct dv_arena *arena)
{
    char *text = dv_arena_alloc_array(arena, word.n + 1, 1, 1);

    if (word.n > 0)
        memcpy(text, word.p, word.n);
    words->argv[words->argc++] = text;
}

/* A file that holds this; "--config=PATH" is added to the words. */
static int add_config(struct words *words, dv_str text, struct dv_arena *arena)
{
    int fd = memfd_create("config", MFD_CLOEXEC);

    assert(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
    add_word(words, dv_str_printf(arena, "--config=/proc/self/fd/%d", fd), arena);
    return fd;
}

static bool parse(const struct words *words, struct dv_arena *arena, struct dv_options *options)
{
    struct dv_err err;

    if (dv_options_parse(words->argc, words->argv, arena, options, &err))
        return true;
    assert(err.code != DV_OK && err.msg[0] != '\0');
    return false;
}

static const size_t texts[] = {
    offsetof(struct dv_options, kubelet_dir),    offsetof(struct dv_options, state_dir),
    offsetof(struct dv_options, runtime_dir),    offsetof(struct dv_options, cdi_dirs),
    offsetof(struct dv_options, node_name),      offsetof(struct dv_options, listen),
    offsetof(struct dv_options, kubeconfig),     offsetof(struct dv_options, topology_policy),
    offsetof(struct dv_options, topology_scope), offsetof(struct dv_options, topology_options),
    offsetof(struct dv_options, sys_dir),        offsetof(struct dv_options, boot_id_file),
    offsetof(struct dv_options, ledger),
};

static dv_str text_of(const struct dv_options *options, size_t i)
{
    return *(const dv_str *)(const void *)((const char *)options + texts[i]);
}

static void check(const struct dv_options *options)
{
    assert(options->roles < 16 && options->wait_ms <= (uint64_t)UINT32_MAX * 1000);
    assert(options->wants_help || options->wants_version || options->roles != 0);
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        assert(dv_str_find_char(text_of(options, i), '\0') == text_of(options, i).n);
}

static bool is_printable(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < ' ' || text.p[i] > '~')
            return false;
    return true;
}

/* The words as lines of YAML; false: some cannot be. */
static bool print_file(const struct words *words, struct dv_buf *buf)
{
    for (int i = 1; i < words->argc; i++) {
        dv_str word = dv_str_from_c(words->argv[i]);
        size_t equals = dv_str_find_char(word, '=');
        dv_str name = dv_str_slice(word, 2, equals);

        if (!dv_str_starts_with(word, DV_STR("--")) || equals == word.n || !is_printable(word) ||
            dv_str_eq(name, DV_STR("config")) || dv_str_eq(name, DV_STR("help")))
            return false;
        dv_buf_add_json(buf, name);
        dv_buf_add_c(buf, ": ");
        dv_buf_add_json(buf, dv_str_slice(word, equals + 1, word.n));
        dv_buf_add_char(buf, '\n');
    }
    return words->argc > 1;
}

static void check_same(const struct dv_options *a, const struct dv_options *b)
{
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        assert(dv_str_eq(text_of(a, i), text_of(b, i)));
    assert(a->wait_ms == b->wait_ms && a->is_strict == b->is_strict && a->roles == b->roles);
    assert(a->insecure_http == b->insecure_http && a->log_format == b->log_format);
    assert(a->log_level == b->log_level && a->wants_version == b->wants_version);
}

static void check_as_file(const struct words *words, const struct dv_options *options,
                          struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct words only_file = {.argv = {words->argv[0]}, .argc = 1};
    struct dv_options again;
    int fd;

    dv_buf_init(&buf, 16 * BYTES_MAX);
    if (!print_file(words, &buf))
        return;
    fd = add_config(&only_file, dv_buf_str(&buf), arena);
    assert(parse(&only_file, arena, &again));
    check_same(options, &again);
    (void)close(fd); /* was only read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str rest = {(const char *)data, size};
    struct words words = {.argv = {(char[]){"davitd"}}, .argc = 1};
    struct dv_options options;
    dv_str line;

    if (size > BYTES_MAX)
        return 0;
    while (words.argc < WORDS_MAX && dv_str_split(&rest, '\n', &line) && line.n > 0) {
        if (dv_str_find(line, DV_STR("config")) < line.n)
            return 0; /* files of this machine are not what this is about */
        add_word(&words, dv_str_slice(line, 0, dv_str_find_char(line, '\0')), arena);
    }
    if (parse(&words, arena, &options)) {
        check(&options);
        check_as_file(&words, &options, arena);
    }
    if (rest.n > 0) {
        int fd = add_config(&words, rest, arena);

        if (parse(&words, arena, &options))
            check(&options);
        (void)close(fd); /* was only read */
    }
    return 0;
}
