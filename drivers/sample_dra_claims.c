#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample_dra.h"

#define CDI_VERSION "0.5.0"
/* The second half of a CDI kind: <driver>/claim. */
#define CDI_CLASS "claim"
#define RECORD_BYTES_MAX 65536u

bool sample_dra_claims_init(struct sample_dra_claims *claims,
                            const struct sample_dra_options *options, const char *plugin_dir)
{
    struct davit_error error;

    claims->dir = sample_printf("%s/claims", plugin_dir);
    claims->cdi_dir = options->cdi_dir;
    claims->driver = options->driver;
    claims->fault = options->fault;
    if (sample_dir_make(claims->dir, &error) && sample_dir_make(claims->cdi_dir, &error))
        return true;
    sample_complain("%s", error.message);
    return false;
}

void sample_dra_claims_fini(struct sample_dra_claims *claims)
{
    free(claims->dir);
}

/* A UID becomes a part of file names: it must not lead elsewhere. */
static bool check_uid(const char *uid, struct davit_error *error)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    if (uid[0] != '\0' && uid[strspn(uid, plain)] == '\0' && strlen(uid) <= 128)
        return true;
    error->code = DAVIT_INVALID_ARGUMENT;
    (void)snprintf(error->message, sizeof(error->message), "no such UID: \"%.100s\"", uid);
    return false;
}

static char *spec_path(const struct sample_dra_claims *claims, const char *uid)
{
    return sample_printf("%s/%s-%s.json", claims->cdi_dir, claims->driver, uid);
}

static char *record_path(const struct sample_dra_claims *claims, const char *uid)
{
    return sample_printf("%s/%s", claims->dir, uid);
}

/* ---- the CDI spec ---- */

static void add_json(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            (void)fprintf(out, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(out, "\\u%04x", c);
        else
            (void)fputc(c, out);
    }
}

/* A name for the environment: what it may not have becomes _. */
static void add_name(FILE *out, const char *text)
{
    for (; *text; text++) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                        (*text >= '0' && *text <= '9');

        (void)fputc(is_plain ? *text : '_', out);
    }
}

/* SAMPLE_<request>_<n>=pool/device, and what class and claim say about it, in their order. */
static void add_edits(const struct davit_dra_claim *claim, size_t at, FILE *out)
{
    const struct davit_dra_result *result = &claim->results[at];
    size_t n_configs = 0;

    (void)fputs("{\"env\":[\"SAMPLE_", out);
    add_name(out, result->request);
    (void)fprintf(out, "_%zu=", at);
    add_json(out, result->pool);
    (void)fputc('/', out);
    add_json(out, result->device);
    (void)fputc('"', out);
    for (size_t i = 0; i < claim->n_configs; i++) {
        const struct davit_dra_config *config = &claim->configs[i];

        if (!davit_dra_config_is_for(config, result->request))
            continue;
        (void)fputs(",\"SAMPLE_CONFIG_", out);
        add_name(out, result->request);
        (void)fprintf(out, "_%zu_%zu_%s=", at, n_configs++,
                      config->is_from_class ? "admin" : "user");
        add_json(out, config->parameters);
        (void)fputc('"', out);
    }
    (void)fputs("]}", out);
}

static char *make_spec(const struct sample_dra_claims *claims, const struct davit_dra_claim *claim)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        abort(); /* no memory */
    (void)fprintf(out, "{\"cdiVersion\":\"%s\",\"kind\":\"%s/%s\",\"devices\":[", CDI_VERSION,
                  claims->driver, CDI_CLASS);
    for (size_t i = 0; i < claim->n_results; i++) {
        (void)fprintf(out, "%s{\"name\":\"%s-%zu\",\"containerEdits\":", i ? "," : "",
                      claim->ref.uid, i);
        add_edits(claim, i, out);
        (void)fputc('}', out);
    }
    (void)fputs("]}\n", out);
    if (fclose(out) != 0)
        abort(); /* no memory */
    return text;
}

char *sample_dra_cdi_name(const struct sample_dra_claims *claims,
                          const struct davit_dra_claim *claim, size_t result)
{
    return sample_printf("%s/%s=%s-%zu", claims->driver, CDI_CLASS, claim->ref.uid, result);
}

/* ---- records ---- */

static char *make_record(const struct davit_dra_claim *claim)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        abort(); /* no memory */
    (void)fprintf(out, "%s %s", claim->ref.claim_namespace, claim->ref.name);
    for (size_t i = 0; i < claim->n_results; i++)
        (void)fprintf(out, " %s/%s", claim->results[i].pool, claim->results[i].device);
    (void)fputc('\n', out);
    if (fclose(out) != 0)
        abort(); /* no memory */
    return text;
}

/* The record first: what is begun is known, and unprepare removes it. */
bool sample_dra_claims_prepare(const struct sample_dra_claims *claims,
                               const struct davit_dra_claim *claim, struct davit_error *error)
{
    char *record_at = record_path(claims, claim->ref.uid);
    char *spec_at = spec_path(claims, claim->ref.uid);
    char *record = make_record(claim);
    char *spec = make_spec(claims, claim);
    bool is_old = access(record_at, F_OK) == 0;
    bool trusts_checkpoint = sample_is_fault(claims->fault, "trusts-checkpoint");
    bool is_good = check_uid(claim->ref.uid, error) &&
                   sample_file_replace(record_at, record, error) &&
                   (claim->n_results == 0 || (is_old && trusts_checkpoint) ||
                    sample_file_replace(spec_at, spec, error));

    free(spec);
    free(record);
    free(spec_at);
    free(record_at);
    return is_good;
}

bool sample_dra_claims_unprepare(const struct sample_dra_claims *claims,
                                 const struct davit_dra_claim_ref *claim, struct davit_error *error)
{
    char *record_at = record_path(claims, claim->uid);
    char *spec_at = spec_path(claims, claim->uid);
    bool is_good = check_uid(claim->uid, error) &&
                   (sample_is_fault(claims->fault, "unprepare-keeps-spec") ||
                    sample_file_remove(spec_at, error)) &&
                   sample_file_remove(record_at, error);

    free(spec_at);
    free(record_at);
    return is_good;
}

static int is_record(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !strchr(entry->d_name, '.'); /* no temporary file */
}

/* " UID=namespace/name:pool/device,..." */
static void print_record(const struct sample_dra_claims *claims, const char *uid, FILE *out)
{
    char *path = record_path(claims, uid);
    FILE *file = fopen(path, "re");
    char *text = sample_alloc(RECORD_BYTES_MAX);
    char *rest = NULL;
    size_t at = 0;

    if (file && fgets(text, RECORD_BYTES_MAX, file)) {
        (void)fprintf(out, " %s=", uid);
        for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
            static const char *const before[] = {"", "/", ":", ","};

            (void)fprintf(out, "%s%s", before[at], word);
            at += at < 3;
        }
    }
    if (file)
        (void)fclose(file); /* was only read */
    free(text);
    free(path);
}

void sample_dra_claims_list(const struct sample_dra_claims *claims, FILE *out)
{
    struct dirent **entries = NULL;
    int n = scandir(claims->dir, &entries, is_record, alphasort);

    (void)fprintf(out, "ok %d", n > 0 ? n : 0);
    for (int i = 0; i < n; i++) {
        print_record(claims, entries[i]->d_name, out);
        free(entries[i]);
    }
    free(entries);
    (void)fputc('\n', out);
}
