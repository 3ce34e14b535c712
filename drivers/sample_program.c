#include "sample_program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sample_complain(const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void sample_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vprintf(format, args); /* a reader that is gone does not concern us */
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void *sample_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        abort();
    return p;
}

char *sample_copy(const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(sample_alloc(n), text, n);
}

char *sample_printf(const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort(); /* no memory */
    va_end(args);
    return text;
}

bool sample_number_parse(const char *text, unsigned long max, unsigned long *number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    *number = strtoul(text, &end, 10);
    return *end == '\0' && *number <= max;
}

int sample_choose(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    return -1;
}

bool sample_log_parse(const char *text, enum davit_log_level *level)
{
    static const char *const words[] = {"error", "warn", "info", "debug", "trace"};
    int at = sample_choose(text, words, 5);

    if (at >= 0)
        *level = (enum davit_log_level)at;
    return at >= 0;
}

/* ---- the command line ---- */

/* By its first n characters. */
static const struct sample_option *find(const struct sample_usage *usage, const char *word,
                                        size_t n)
{
    for (size_t i = 0; i < usage->n_table; i++)
        if (strlen(usage->table[i].name) == n && strncmp(usage->table[i].name, word, n) == 0)
            return &usage->table[i];
    return NULL;
}

static bool set(void *options, const struct sample_option *option, const char *value)
{
    if (option->set)
        return option->set(options, value);
    memcpy((char *)options + option->at, &value, sizeof(value));
    return value[0] != '\0';
}

/* "--name value" or "--name=value"; *at is moved past what was used. */
static bool parse_word(const struct sample_usage *usage, void *options, int argc, char **argv,
                       int *at)
{
    const char *word = argv[(*at)++];
    size_t n = strcspn(word, "=");
    const struct sample_option *option = find(usage, word, n);
    const char *given = word[n] == '=' ? word + n + 1 : NULL;

    if (!option) {
        sample_complain("unexpected word \"%s\"; --help tells more", word);
        return false;
    }
    if (option->has_value && !given && *at < argc)
        given = argv[(*at)++];
    if (option->has_value != (given != NULL)) {
        sample_complain("%s %s; --help tells more", option->name,
                        given ? "takes no value" : "needs a value");
        return false;
    }
    if (!set(options, option, given ? given : "")) {
        sample_complain("%s: \"%s\" is not right; --help tells more", option->name, given);
        return false;
    }
    return true;
}

int sample_usage_parse(const struct sample_usage *usage, int argc, char **argv, void *options)
{
    for (int at = 1; at < argc;) {
        bool wants_version = strcmp(argv[at], "--version") == 0;

        if (wants_version || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            if (wants_version)
                (void)printf("%s %s\n", usage->name, DV_VERSION);
            else
                (void)fputs(usage->help, stdout);
            return fflush(stdout) == 0 ? 0 : SAMPLE_EXIT_START;
        }
        if (!parse_word(usage, options, argc, argv, &at))
            return SAMPLE_EXIT_USAGE;
    }
    return -1;
}

/* ---- life ---- */

int sample_program_run(struct davit_driver *driver, struct sample_control *control, bool is_good,
                       const struct davit_error *error)
{
    if (is_good)
        davit_driver_run(driver);
    else
        sample_complain("%s", error->message);
    sample_control_close(control);
    davit_driver_free(driver);
    if (is_good)
        return 0;
    return error->code == DAVIT_INVALID_ARGUMENT ? SAMPLE_EXIT_USAGE : SAMPLE_EXIT_START;
}

bool sample_is_fault(const char *fault, const char *name)
{
    return fault && strcmp(fault, name) == 0;
}
