/* complete.c - what may come next on a command line, out of the tables of verbs and options. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_kinds.h"
#include "resource/resource.h"
#include "verify/verify.h"

/* How long a Tab waits for names of objects. */
#define NAMES_SECONDS "2"
/* Names of resources and drivers, a line each; without blanks, at which shells split it. */
#define RESOURCES                                                                                  \
    "jsonpath={range.resources[*]}{.name}{\"\\n\"}{end}{range.pools[*]}{.driver}{\"\\n\"}{end}"
/* Names of devices, a line each. */
#define DEVICES                                                                                    \
    "jsonpath={range.resources[*].devices[*]}{.id}{\"\\n\"}{end}"                                  \
    "{range.pools[*].devices[*]}{.name}{\"\\n\"}{end}"

/* Names of classes, a line each, and of a pod's containers. */
#define CLASSES "jsonpath={range.items[*]}{.metadata.name}{\"\\n\"}{end}"
#define CONTAINERS                                                                                 \
    "jsonpath={range.spec.initContainers[*]}{.name}{\"\\n\"}{end}"                                 \
    "{range.spec.containers[*]}{.name}{\"\\n\"}{end}"

#define CASES_BYTES_MAX (1u << 20)

/* What the line says about where to ask: options that a question for names repeats. */
static const struct {
    const char *option;
    enum dv_cli_peer peer;
} repeated[] = {
    {"socket",     DV_PEER_DAEMON},
    {"kubeconfig", DV_PEER_API   },
    {"context",    DV_PEER_API   },
    {"state-dir",  DV_PEER_API   },
};
#define N_REPEATED DV_COUNT(repeated)

/* A command line, and its last word, which is being written. */
struct line {
    const struct dv_cli_verb *verb;
    dv_str *places; /* the words before it that are no options and no values of one */
    size_t n_places;
    bool has_options; /* there was no "--" */
    bool has_value_next;
    struct dv_cli_option option; /* has_value_next: whose value the last word is */
    dv_str namespace;            /* of -n; empty: none */
    dv_str where[N_REPEATED];    /* the values of `repeated`; empty: not there */
    dv_str current;              /* the last word, perhaps only begun */
    struct dv_arena *arena;
    struct dv_buf *buf;
};

/* ---- what is offered ---- */

/* `before` is the part of the current word that stays. */
static void offer(const struct line *line, dv_str before, dv_str word, const char *meaning)
{
    dv_str begun =
        dv_str_slice(line->current, dv_size_min(before.n, line->current.n), line->current.n);

    if (dv_str_starts_with(word, begun))
        dv_buf_printf(line->buf, "%.*s%.*s\t%s\n", DV_FMT(before), DV_FMT(word), meaning);
}

static void offer_verbs(const struct line *line)
{
    for (size_t i = 0; i < dv_n_verbs; i++)
        offer(line, DV_STR(""), dv_str_from_c(dv_verbs[i].name), dv_verbs[i].summary);
}

/* Offers kinds. Of a list with commas, the last one is being written. */
static void offer_kinds(const struct line *line)
{
    size_t n = line->current.n;

    while (n > 0 && line->current.p[n - 1] != ',')
        n--;
    for (size_t i = 0; i < DV_N_KINDS; i++)
        offer(line, dv_str_slice(line->current, 0, n),
              dv_cli_kind_word(dv_kind((enum dv_kind_id)i)), "kind");
}

/* Whether the text has only such characters as names of the API have, those in `more` too. The
 * shell splits what it is told at blanks, and passes it on unquoted. */
static bool is_plain(dv_str text, const char *more)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", text.p[i]) && !strchr(more, text.p[i]))
            return false;
    return text.n > 0 && text.p[0] != '-';
}

#define MORE_CHARACTERS "./_ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Tells the shell to ask davit itself: `how` is ":words" or ":names", what follows the words of
 * the question. It is put where the line would put it. */
static void ask(const struct line *line, const char *how, enum dv_cli_peer peer, dv_str question)
{
    dv_buf_printf(line->buf, "%s %.*s --timeout " NAMES_SECONDS, how, DV_FMT(question));
    for (size_t i = 0; i < N_REPEATED; i++)
        if (repeated[i].peer == peer && is_plain(line->where[i], MORE_CHARACTERS))
            dv_buf_printf(line->buf, " --%s %.*s", repeated[i].option, DV_FMT(line->where[i]));
    if (peer == DV_PEER_API && is_plain(line->namespace, ""))
        dv_buf_printf(line->buf, " -n %.*s", DV_FMT(line->namespace));
    dv_buf_add_char(line->buf, '\n');
}

static void ask_daemon(const struct line *line, const char *question)
{
    ask(line, ":words", DV_PEER_DAEMON, dv_str_from_c(question));
}

/* Offers the devices of the resource or driver that is the word before. */
static void offer_devices(const struct line *line)
{
    if (line->n_places > 0 && is_plain(line->places[0], MORE_CHARACTERS))
        ask(line, ":words", DV_PEER_DAEMON,
            dv_str_printf(line->arena, "devices %.*s -o " DEVICES, DV_FMT(line->places[0])));
}

/* Offers the containers of the pod that is named before, "pod/NAME" or "NAME". */
static void offer_containers(const struct line *line)
{
    dv_str pod = line->n_places > 0 ? line->places[0] : DV_STR_NONE;
    size_t slash = dv_str_find_char(pod, '/');

    pod = dv_str_slice(pod, slash < pod.n ? slash + 1 : 0, pod.n);
    if (line->verb->peer == DV_PEER_API && is_plain(pod, "."))
        ask(line, ":words", DV_PEER_API,
            dv_str_printf(line->arena, "get pod %.*s -o " CONTAINERS, DV_FMT(pod)));
}

static void offer_names(const struct line *line, dv_str kind_word)
{
    const struct dv_kind *kind = dv_cli_kind_find(kind_word);

    if (kind)
        ask(line, ":names", DV_PEER_API,
            dv_str_printf(line->arena, "get %.*s -o name", DV_FMT(dv_cli_kind_word(kind))));
}

/* Offers cases of davit verify, of the kind that is named, or of all. */
static void offer_cases(const struct line *line, dv_str before)
{
    for (size_t i = 0; i < DV_VERIFY_N_KINDS; i++) {
        struct dv_verify_options all = {.kind = (enum dv_verify_kind)i};
        DV_CLEANUP(dv_buf_fini) struct dv_buf list;
        dv_str rest;
        dv_str row;

        dv_buf_init(&list, CASES_BYTES_MAX);
        if (line->n_places > 0 && dv_verify_kind_find(line->places[0], &all.kind) &&
            all.kind != (enum dv_verify_kind)i)
            continue;
        dv_verify_list(&all, &list);
        rest = dv_buf_str(&list);
        while (rest.n > 0 && dv_str_split(&rest, '\n', &row))
            offer(line, before, dv_str_slice(row, 0, dv_str_find_char(row, ' ')), "case");
    }
}

static void offer_options(const struct line *line)
{
    struct dv_cli_option option;
    char letter[] = "-?";
    char name[64];

    for (size_t i = 0; dv_cli_option_get(line->verb, i, &option); i++) {
        (void)snprintf(name, sizeof(name), "--%s", option.name);
        offer(line, DV_STR(""), dv_str_from_c(name), option.help);
        letter[1] = option.letter;
        if (option.letter)
            offer(line, DV_STR(""), dv_str_from_c(letter), option.help);
    }
    offer(line, DV_STR(""), DV_STR("--help"), "more about the verb");
}

/* Offers values. The help's name for a value says what it is: "json|yaml" these words, FILE
 * a file. */
static void offer_value(const struct line *line, dv_str before, const struct dv_cli_option *option)
{
    dv_str rest = dv_str_from_c(option->value);
    dv_str word;

    if (dv_str_starts_with(rest, DV_STR("[=")))
        rest = dv_str_slice(rest, 2, rest.n - 1);
    if (dv_str_starts_with(rest, DV_STR("FILE")) || dv_str_eq(rest, DV_STR("PATH")))
        dv_buf_add_c(line->buf, ":files\n");
    else if (dv_str_starts_with(rest, DV_STR("DIR")))
        dv_buf_add_c(line->buf, ":folders\n");
    else if (dv_str_eq(rest, DV_STR("CASE")))
        offer_cases(line, before);
    else if (dv_str_eq(rest, DV_STR("NAMESPACE")))
        offer_names(line, DV_STR("namespaces"));
    else if (dv_str_eq(rest, DV_STR("CLASS")))
        ask(line, ":words", DV_PEER_API, DV_STR("get classes -o " CLASSES));
    else if (dv_str_eq(rest, DV_STR("CONTAINER")))
        offer_containers(line);
    else if (rest.p[0] >= 'a' && rest.p[0] <= 'z')
        while (dv_str_split(&rest, '|', &word)) /* of "jsonpath=TEMPLATE" what is literal */
            offer(line, before,
                  dv_str_slice(word, 0, dv_size_min(word.n, dv_str_find_char(word, '=') + 1)),
                  option->help);
}

/* ---- places: what the verb's usage line has there ---- */

static bool is_literal(dv_str token)
{
    return token.n > 0 && token.p[0] >= 'a' && token.p[0] <= 'z' &&
           dv_str_find_char(token, '/') == token.n;
}

static bool is_repeated(dv_str token)
{
    return dv_str_find(token, DV_STR("...")) < token.n;
}

/* The token of the usage line's alternative at the place of the current word; empty: it has none,
 * or the words before it belong to another alternative. */
static dv_str token_here(const struct line *line, dv_str alternative)
{
    dv_str token = DV_STR_NONE;
    dv_str next;

    for (size_t i = 0; i <= line->n_places; i++) {
        if (alternative.n > 0 && dv_str_split(&alternative, ' ', &next))
            token = next;
        else if (!is_repeated(token))
            return DV_STR_NONE;
        if (i < line->n_places && is_literal(token) && !dv_str_eq(token, line->places[i]))
            return DV_STR_NONE;
    }
    return token;
}

/* Offers what a token stands for. False: other alternatives may have more. */
static bool offer_token(const struct line *line, dv_str token)
{
    size_t slash = dv_str_find_char(line->current, '/');
    dv_str kind = line->n_places > 0 ? line->places[0] : DV_STR_NONE;

    if (dv_str_starts_with(token, DV_STR("[")))
        token = dv_str_slice(token, 1, token.n);
    if (is_literal(token))
        offer(line, DV_STR(""), token, line->verb->summary);
    else if (dv_str_find(token, DV_STR("/NAME")) < token.n && slash < line->current.n)
        offer_names(line, dv_str_slice(line->current, 0, slash));
    else if (dv_str_starts_with(token, DV_STR("KIND")) && line->n_places == 0)
        offer_kinds(line);
    else if (dv_str_starts_with(token, DV_STR("NAME")) && line->n_places > 0)
        offer_names(line, dv_str_slice(kind, 0, dv_str_find_char(kind, ',')));
    else if (dv_str_eq(token, DV_STR("POD")))
        offer_names(line, DV_STR("pods"));
    else if (dv_str_eq(token, DV_STR("NAMESPACE/]POD")))
        ask_daemon(line, "status -o name");
    else if (dv_str_eq(token, DV_STR("NAMESPACE/]NAME")))
        ask_daemon(line, "claim list -o name");
    else if (dv_str_starts_with(token, DV_STR("RESOURCE")))
        ask_daemon(line, "devices -o " RESOURCES);
    else if (dv_str_starts_with(token, DV_STR("DEVICE")))
        offer_devices(line);
    else if (dv_str_eq(token, DV_STR("ID")) && line->verb->peer == DV_PEER_DAEMON)
        ask_daemon(line, "leases -o name");
    else if (dv_str_eq(token, DV_STR("CASE")))
        offer_cases(line, DV_STR(""));
    else if (dv_str_starts_with(token, DV_STR("VERB")))
        offer_verbs(line);
    else if (dv_str_starts_with(token, DV_STR("FILE")))
        dv_buf_add_c(line->buf, ":files\n");
    return !is_literal(token) && line->buf->n > 0;
}

static void offer_places(const struct line *line)
{
    dv_str rest = dv_str_from_c(line->verb->words);
    bool is_done = false;

    while (!is_done && rest.n > 0) {
        size_t end = dv_str_find(rest, DV_STR(" | "));

        is_done = offer_token(line, token_here(line, dv_str_slice(rest, 0, end)));
        rest = dv_str_slice(rest, dv_size_min(end + 3, rest.n), rest.n);
    }
}

/* ---- reading the line ---- */

static const struct dv_cli_verb *find_verb(dv_str name)
{
    for (size_t i = 0; i < dv_n_verbs; i++)
        if (dv_str_eq(dv_str_from_c(dv_verbs[i].name), name))
            return &dv_verbs[i];
    return NULL;
}

/* "--name", "--name=...", "-n", "-nVALUE", "-n=VALUE" */
static bool find_option(const struct line *line, dv_str word, struct dv_cli_option *option)
{
    bool is_long = dv_str_starts_with(word, DV_STR("--"));
    dv_str name = dv_str_slice(word, 2, dv_size_max(2, dv_str_find_char(word, '=')));

    for (size_t i = 0; dv_cli_option_get(line->verb, i, option); i++) {
        if (is_long && dv_str_eq(name, dv_str_from_c(option->name)))
            return true;
        if (!is_long && word.n >= 2 && option->letter == word.p[1] &&
            (word.n == 2 || option->value))
            return true;
    }
    return false;
}

/* Remembers the value of an option that says where to ask. */
static void keep_value(struct line *line, const char *name, dv_str value)
{
    if (strcmp(name, "namespace") == 0)
        line->namespace = value;
    for (size_t i = 0; i < N_REPEATED; i++)
        if (strcmp(name, repeated[i].option) == 0)
            line->where[i] = value;
}

static void read_word(struct line *line, dv_str word)
{
    size_t end = dv_str_starts_with(word, DV_STR("--")) ? dv_str_find_char(word, '=')
                                                        : dv_size_min(2, word.n);
    struct dv_cli_option option;

    if (line->has_value_next) {
        line->has_value_next = false;
        keep_value(line, line->option.name, word);
    } else if (line->has_options && dv_str_eq(word, DV_STR("--"))) {
        line->has_options = false;
    } else if (!line->has_options || word.n < 2 || word.p[0] != '-') {
        line->places[line->n_places++] = word;
    } else if (end < word.n && find_option(line, word, &option)) {
        end += word.p[end] == '=';
        keep_value(line, option.name, dv_str_slice(word, end, word.n));
    } else if (end == word.n && find_option(line, word, &line->option)) {
        line->has_value_next = line->option.value && line->option.value[0] != '[';
    }
}

/* Reads words as those of the verb, from the beginning. */
static void read_words(struct line *line, const struct dv_cli_verb *verb, const dv_str *words,
                       size_t n)
{
    *line = (struct line){.verb = verb,
                          .places = line->places,
                          .has_options = true,
                          .current = line->current,
                          .arena = line->arena,
                          .buf = line->buf};
    for (size_t i = 0; i < n; i++)
        read_word(line, words[i]);
}

/* Finds the verb, behind options that it has, and reads what is before it. The place of the word
 * behind it; 0: there is none yet, and the line is read as if a verb with these options came. */
static size_t find_verb_place(struct line *line, const dv_str *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct dv_cli_verb *verb = find_verb(words[i]);

        if (verb) {
            read_words(line, verb, words, i);
            if (line->n_places == 0 && !line->has_value_next)
                return i + 1;
        }
    }
    for (size_t i = 0; i < dv_n_verbs; i++) {
        struct dv_cli_option option;

        read_words(line, &dv_verbs[i], words, n);
        if (n > 0 && find_option(line, words[0], &option))
            return 0;
    }
    return 0;
}

static void complete(struct line *line)
{
    size_t equals = dv_str_find_char(line->current, '=');
    struct dv_cli_option option;

    if (line->has_value_next)
        offer_value(line, DV_STR(""), &line->option);
    else if (!line->has_options || !dv_str_starts_with(line->current, DV_STR("-")))
        offer_places(line);
    else if (equals == line->current.n)
        offer_options(line);
    else if (find_option(line, line->current, &option) && option.value)
        offer_value(line, dv_str_slice(line->current, 0, equals + 1), &option);
}

void dv_cli_complete(const dv_str *words, size_t n_words, struct dv_arena *arena,
                     struct dv_buf *buf)
{
    size_t n = n_words > 0 ? n_words - 1 : 0; /* before the current one */
    struct line line = {.places = DV_NEW_ARRAY(arena, dv_str, n_words + 1),
                        .current = n_words > 0 ? words[n] : DV_STR(""),
                        .arena = arena,
                        .buf = buf};
    size_t place = find_verb_place(&line, words, n);

    for (size_t i = place; place > 0 && i < n; i++)
        read_word(&line, words[i]);
    if (place > 0 || line.has_value_next)
        complete(&line);
    else if (line.n_places == 0)
        offer_verbs(&line);
}
