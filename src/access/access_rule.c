/* access_rule.c - whether a rule covers a question. */
#include "access/access_rule.h"

#include <string.h>

#include "access/access.h"
#include "base/map.h"
#include "resource/resource.h"

#define ANY DV_STR("*")

bool dv_access_has(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text))
            return true;
    return false;
}

static bool has_or_any(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text) || dv_str_eq(texts[i], ANY))
            return true;
    return false;
}

/* ---- questions ---- */

uint32_t dv_access_cell(dv_str group, dv_str resource)
{
    uint64_t hash = dv_hash(group) * UINT64_C(0x9e3779b97f4a7c15) ^ dv_hash(resource);

    return (uint32_t)(hash ^ hash >> 32);
}

/* Finds all cells in which a rule can be that covers the question. */
static void find_cells(struct dv_access_question *question)
{
    const dv_str groups[] = {question->group, ANY};
    char any_of[DV_ACCESS_RESOURCE_BYTES_MAX + 3];
    dv_str of_sub = {any_of, question->subresource.n + 2};

    if (question->has_subresource) {
        any_of[0] = '*';
        any_of[1] = '/';
        if (question->subresource.n > 0)
            memcpy(any_of + 2, question->subresource.p, question->subresource.n);
    }
    for (size_t i = 0; i < 2; i++) {
        question->cells[question->n_cells++] = dv_access_cell(groups[i], question->resource);
        question->cells[question->n_cells++] = dv_access_cell(groups[i], ANY);
        if (question->has_subresource)
            question->cells[question->n_cells++] = dv_access_cell(groups[i], of_sub);
    }
}

void dv_access_ask(const struct dv_access_request *request, struct dv_access_question *question)
{
    size_t n = request->resource.n;

    question->verb = request->verb;
    question->path = request->path;
    question->n_cells = 0;
    if (request->path.n > 0)
        return;
    question->group = request->group;
    question->name = request->name;
    question->is_any_name = false;
    question->resource = request->resource;
    question->subresource = request->subresource;
    question->has_subresource = request->subresource.n > 0;
    question->is_too_long = n + 1 + request->subresource.n > DV_ACCESS_RESOURCE_BYTES_MAX;
    if (question->is_too_long)
        return;
    if (question->has_subresource) {
        if (n > 0)
            memcpy(question->buf, request->resource.p, n);
        question->buf[n] = '/';
        memcpy(question->buf + n + 1, request->subresource.p, request->subresource.n);
        question->resource = (dv_str){question->buf, n + 1 + request->subresource.n};
    }
    find_cells(question);
}

void dv_access_ask_atom(dv_str verb, dv_str group, dv_str resource, const dv_str *name,
                        struct dv_access_question *question)
{
    size_t slash = dv_str_find_char(resource, '/');

    question->verb = verb;
    question->path = DV_STR_NONE;
    question->group = group;
    question->resource = resource;
    question->has_subresource = slash < resource.n;
    question->subresource =
        question->has_subresource ? dv_str_slice(resource, slash + 1, resource.n) : DV_STR_NONE;
    question->name = name ? *name : DV_STR_NONE;
    question->is_any_name = !name;
    question->n_cells = 0;
    question->is_too_long = resource.n > DV_ACCESS_RESOURCE_BYTES_MAX;
    if (!question->is_too_long)
        find_cells(question);
}

/* ---- rules ---- */

/* "*" at the end stands for anything, also for nothing; several of them are one. */
static bool covers_path(const dv_str *urls, size_t n, dv_str path)
{
    for (size_t i = 0; i < n; i++) {
        dv_str start = urls[i];

        if (dv_str_eq(urls[i], path))
            return true;
        while (start.n > 0 && start.p[start.n - 1] == '*')
            start.n--;
        if (start.n < urls[i].n && dv_str_starts_with(path, start))
            return true;
    }
    return false;
}

static bool is_any_of(dv_str resource, dv_str subresource)
{
    return resource.n == subresource.n + 2 && resource.p[0] == '*' && resource.p[1] == '/' &&
           dv_str_eq(dv_str_slice(resource, 2, resource.n), subresource);
}

static bool covers_resource(const struct dv_api_policy_rule *rule,
                            const struct dv_access_question *question)
{
    for (size_t i = 0; i < rule->n_resources; i++)
        if (dv_str_eq(rule->resources[i], ANY) ||
            (!question->is_too_long && dv_str_eq(rule->resources[i], question->resource)) ||
            (question->has_subresource && is_any_of(rule->resources[i], question->subresource)))
            return true;
    return false;
}

bool dv_access_rule_covers(const struct dv_api_policy_rule *rule,
                           const struct dv_access_question *question)
{
    if (!has_or_any(rule->verbs, rule->n_verbs, question->verb))
        return false;
    if (question->path.n > 0)
        return covers_path(rule->non_resource_urls, rule->n_non_resource_urls, question->path);
    return has_or_any(rule->api_groups, rule->n_api_groups, question->group) &&
           covers_resource(rule, question) &&
           (rule->n_resource_names == 0 ||
            (!question->is_any_name &&
             dv_access_has(rule->resource_names, rule->n_resource_names, question->name)));
}
