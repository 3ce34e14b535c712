/* prepare_apps.c - what a server sets and keeps in what makes pods. */
#include "resource/prepare/prepare_apps.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"

/* Sets the counter of changes of a DaemonSet's template, which is an annotation that nobody else
 * can set. */
static void set_template_generation(struct dv_api_daemon_set *set, uint64_t generation,
                                    struct dv_arena *arena)
{
    dv_entry_set(&set->metadata.annotations, &set->metadata.n_annotations,
                 DV_STR(DV_TEMPLATE_GENERATION_ANNOTATION),
                 dv_str_printf(arena, "%llu", (unsigned long long)generation), arena);
}

void dv_create_daemon_set(void *value, const struct dv_prepare *how)
{
    struct dv_api_daemon_set *set = value;

    set->status = (struct dv_api_daemon_set_status){0};
    set_template_generation(set, 1, how->arena);
}

static void count_template(struct dv_api_daemon_set *set, const struct dv_api_daemon_set *old,
                           struct dv_arena *arena)
{
    const struct dv_str_entry *counted =
        dv_entry_find(old->metadata.annotations, old->metadata.n_annotations,
                      DV_STR(DV_TEMPLATE_GENERATION_ANNOTATION));
    uint64_t generation = 0;

    if (!counted || !dv_str_to_u64(counted->value, &generation) || generation >= INT64_MAX)
        generation = 0;
    if (!dv_message_eq(&dv_message_pod_template_spec, &set->spec.template, &old->spec.template))
        generation++;
    set_template_generation(set, generation, arena);
}

void dv_update_daemon_set(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_daemon_set *set = value;
    const struct dv_api_daemon_set *old_set = old;

    set->status = old_set->status;
    count_template(set, old_set, how->arena);
}

void dv_update_daemon_set_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_daemon_set *set = value;
    const struct dv_api_daemon_set *old_set = old;

    set->spec = old_set->spec;
    count_template(set, old_set, how->arena);
}

/* ---- Deployments and ReplicaSets ---- */

void dv_create_deployment(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_deployment *)value)->status = (struct dv_api_deployment_status){0};
}

void dv_update_deployment(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_deployment *)value)->status = ((const struct dv_api_deployment *)old)->status;
}

void dv_update_deployment_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_deployment *deployment = value;
    const struct dv_api_deployment *had = old;

    (void)how;
    deployment->spec = had->spec;
    deployment->metadata.labels = had->metadata.labels;
    deployment->metadata.n_labels = had->metadata.n_labels;
}

void dv_create_replica_set(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_replica_set *)value)->status = (struct dv_api_replica_set_status){0};
}

void dv_update_replica_set(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_replica_set *)value)->status = ((const struct dv_api_replica_set *)old)->status;
}

void dv_update_replica_set_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_replica_set *)value)->spec = ((const struct dv_api_replica_set *)old)->spec;
}

/* ---- Jobs ---- */

static void add_label(struct dv_api_object_meta *meta, dv_str key, dv_str value,
                      struct dv_arena *arena)
{
    /* One that the user has set stays: validation refuses it where it is another. */
    if (!dv_entry_find(meta->labels, meta->n_labels, key))
        dv_entry_set(&meta->labels, &meta->n_labels, key, value, arena);
}

static void generate_selector(struct dv_api_job *job, struct dv_arena *arena)
{
    struct dv_api_object_meta *template = &job->spec.template.metadata;
    struct dv_api_label_selector *selector = DV_NEW(arena, struct dv_api_label_selector);

    add_label(template, DV_STR(DV_OLD_JOB_NAME_LABEL), job->metadata.name, arena);
    add_label(template, DV_STR(DV_JOB_NAME_LABEL), job->metadata.name, arena);
    add_label(template, DV_STR(DV_OLD_JOB_UID_LABEL), job->metadata.uid, arena);
    add_label(template, DV_STR(DV_JOB_UID_LABEL), job->metadata.uid, arena);
    if (job->spec.selector)
        *selector = *job->spec.selector;
    if (!dv_entry_find(selector->match_labels, selector->n_match_labels, DV_STR(DV_JOB_UID_LABEL)))
        dv_entry_set(&selector->match_labels, &selector->n_match_labels, DV_STR(DV_JOB_UID_LABEL),
                     job->metadata.uid, arena);
    job->spec.selector = selector;
}

void dv_create_job(void *value, const struct dv_prepare *how)
{
    struct dv_api_job *job = value;
    struct dv_api_object_meta *template = &job->spec.template.metadata;
    /* A Job without labels has those of its template, by default: then also the generated ones. */
    bool shares_labels = job->metadata.n_labels == 0 || job->metadata.labels == template->labels;

    job->status = (struct dv_api_job_status){0};
    if (!job->spec.manual_selector || !*job->spec.manual_selector)
        generate_selector(job, how->arena);
    if (shares_labels) {
        job->metadata.labels = template->labels;
        job->metadata.n_labels = template->n_labels;
    }
}

void dv_update_job(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_job *)value)->status = ((const struct dv_api_job *)old)->status;
}

void dv_update_job_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_job *)value)->spec = ((const struct dv_api_job *)old)->spec;
}
