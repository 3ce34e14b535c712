/* parse.c - reads a command line by the table of options. */
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/terminal/option_row.h"
#include "json/json.h"
#include "json/jsonpath.h"

/* More words were not meant for a verb that takes one or two. */
#define WORDS_MAX 16u
/* What a template prints of nothing: its own text. */
#define TEMPLATE_BYTES_MAX (1u << 20)

/* What is left of the command line. */
struct reading {
    struct dv_cli *cli;
    const struct dv_cli_verb *verb;
    char *const *args;
    int n_args;
    int at;
    struct dv_err *err;
};

static bool fail(struct reading *reading, const struct dv_option_row *option, const char *what)
{
    char short_name[] = {'-', option->letter, '\0'};

    return dv_fail(reading->err, DV_INVALID_ARGUMENT, "%s%s %s%s",
                   option->letter ? short_name : "--", option->letter ? "" : option->name, what,
                   option->value ? option->value : "");
}

/* The option takes no such value; "[=true|false]" is what may be left out. */
static bool fail_value(struct reading *reading, const struct dv_option_row *option, dv_str value)
{
    dv_str takes = dv_str_from_c(option->value);

    if (dv_str_starts_with(takes, DV_STR("[=")))
        takes = dv_str_slice(takes, 2, takes.n - 1);
    return dv_fail(reading->err, DV_INVALID_ARGUMENT, "%s%.*s takes %.*s, and not \"%.*s\"",
                   option->letter ? "-" : "--", option->letter ? 1 : (int)strlen(option->name),
                   option->letter ? &option->letter : option->name, DV_FMT(takes), DV_FMT(value));
}

/* `value` is what stood in the same word; has_value: there was something. */
static bool set(struct reading *reading, const struct dv_option_row *option, bool has_value,
                dv_str value)
{
    bool is_optional = option->value && option->value[0] == '[';
    bool ok;

    if (!option->value && has_value)
        return fail(reading, option, "takes no value");
    if (option->value && !is_optional && !has_value && reading->at < reading->n_args)
        value = dv_str_from_c(reading->args[reading->at++]);
    if (option->value && value.n == 0 && (!is_optional || has_value))
        return fail(reading, option, "needs a value: ");
    if (option->set)
        ok = option->set(reading->cli, value);
    else
        ok = memcpy((char *)reading->cli + option->at, &value, sizeof(value)) != NULL;
    return ok || fail_value(reading, option, value);
}

static bool refuse(struct reading *reading, dv_str word)
{
    dv_str name = dv_str_slice(word, 2, dv_str_find_char(word, '='));
    const char *nearest = NULL;
    size_t best = dv_str_distance_max(name);
    struct dv_cli_option option;

    for (size_t i = 0; name.n > 2 && dv_cli_option_get(reading->verb, i, &option); i++) {
        size_t distance = dv_str_distance(name, dv_str_from_c(option.name));

        if (distance < best) {
            best = distance;
            nearest = option.name;
        }
    }
    if (nearest && word.p[1] == '-')
        return dv_fail(reading->err, DV_INVALID_ARGUMENT,
                       "it has no option %.*s; did you mean --%s?", DV_FMT(word), nearest);
    return dv_fail(reading->err, DV_INVALID_ARGUMENT, "it has no option %.*s", DV_FMT(word));
}

/* "--name", "--name=value" */
static bool read_long(struct reading *reading, dv_str word)
{
    size_t equals = dv_str_find_char(word, '=');
    const struct dv_option_row *option =
        dv_option_find_name(reading->verb, dv_str_slice(word, 2, equals));

    if (!option)
        return refuse(reading, word);
    return set(reading, option, equals < word.n, dv_str_slice(word, equals + 1, word.n));
}

/* "-n value", "-n=value", "-nvalue", and switches together: "-Aw" */
static bool read_letters(struct reading *reading, dv_str word, bool *wants_help)
{
    for (size_t i = 1; i < word.n; i++) {
        const struct dv_option_row *option = dv_option_find_letter(reading->verb, word.p[i]);
        dv_str value = dv_str_slice(word, i + 1, word.n);

        if (!option && word.p[i] == 'h') {
            *wants_help = true;
            continue;
        }
        if (!option)
            return refuse(reading, word);
        if (value.n && value.p[0] == '=')
            return set(reading, option, true, dv_str_slice(value, 1, value.n));
        if (option->value)
            return set(reading, option, value.n > 0, value);
        if (!set(reading, option, false, DV_STR_NONE))
            return false;
    }
    return true;
}

static bool read_word(struct reading *reading, dv_str *words, dv_str word)
{
    if (reading->verb->peer == DV_PEER_DAEMON && !reading->cli->has_command &&
        reading->cli->n_words == WORDS_MAX)
        return dv_fail(reading->err, DV_INVALID_ARGUMENT, "too many words");
    words[reading->cli->n_words++] = word;
    return true;
}

/* A wrong template is found before anybody is asked. */
static bool check_template(struct dv_cli *cli, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf unused = {0};

    if (cli->output != DV_OUTPUT_JSONPATH)
        return true;
    dv_buf_init(&unused, TEMPLATE_BYTES_MAX);
    return dv_jsonpath_print(cli->template, dv_json_new_null(cli->arena), cli->arena, &unused, err);
}

bool dv_cli_parse(struct dv_cli *cli, const struct dv_cli_verb *verb, int n_args, char *const *args,
                  bool *wants_help, struct dv_err *err)
{
    struct reading reading = {cli, verb, args, n_args, 0, err};
    size_t n = n_args > 0 ? (size_t)n_args : 0;
    dv_str *words = DV_NEW_ARRAY(cli->arena, dv_str, n);

    cli->words = words;
    cli->files = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->pools = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->also = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->hooks = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->only = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->required = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->skip = DV_NEW_ARRAY(cli->arena, dv_str, n);
    cli->wanted = DV_NEW_ARRAY(cli->arena, struct dv_cli_wanted, n);
    cli->n_args = n;
    while (reading.at < n_args) {
        dv_str word = dv_str_from_c(args[reading.at++]);
        bool ok = true;

        if (!cli->has_command && dv_str_eq(word, DV_STR("--")))
            cli->has_command = true;
        else if (cli->has_command || word.n < 2 || word.p[0] != '-')
            ok = read_word(&reading, words, word);
        else if (dv_str_eq(word, DV_STR("--help")))
            *wants_help = true;
        else if (word.p[1] == '-')
            ok = read_long(&reading, word);
        else
            ok = read_letters(&reading, word, wants_help);
        if (!ok)
            return false;
        if (!cli->has_command)
            cli->n_own_words = cli->n_words;
    }
    return check_template(cli, err);
}
