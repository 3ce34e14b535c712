/* prepare_apps.h - what a server sets and keeps in what makes pods. */
#ifndef DV_RESOURCE_PREPARE_APPS_H
#define DV_RESOURCE_PREPARE_APPS_H

struct dv_prepare;

void dv_create_daemon_set(void *value, const struct dv_prepare *how);
void dv_update_daemon_set(void *value, const void *old, const struct dv_prepare *how);
void dv_update_daemon_set_status(void *value, const void *old, const struct dv_prepare *how);

void dv_create_deployment(void *value, const struct dv_prepare *how);
void dv_update_deployment(void *value, const void *old, const struct dv_prepare *how);
void dv_update_deployment_status(void *value, const void *old, const struct dv_prepare *how);

void dv_create_replica_set(void *value, const struct dv_prepare *how);
void dv_update_replica_set(void *value, const void *old, const struct dv_prepare *how);
void dv_update_replica_set_status(void *value, const void *old, const struct dv_prepare *how);

/* Without manualSelector, gives the template labels that no other Job's pods have, and the Job the
 * selector for them. */
void dv_create_job(void *value, const struct dv_prepare *how);
void dv_update_job(void *value, const void *old, const struct dv_prepare *how);
void dv_update_job_status(void *value, const void *old, const struct dv_prepare *how);

#endif
