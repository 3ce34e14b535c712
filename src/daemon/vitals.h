/* vitals.h - watches whether the loop turns: metrics of how long its turns take, and the service
 * manager's watchdog, which the loop itself feeds. It also gives free memory back to the system. */
#ifndef DV_DAEMON_VITALS_H
#define DV_DAEMON_VITALS_H

struct dv_loop;
struct dv_metrics;
struct dv_vitals;

/* Keeps the memory that is free, and not given back, small. Before the first thread is started. */
void dv_vitals_bound_heaps(void);

/* Adds its families to `metrics`; both arguments are borrowed until dv_vitals_free. When the
 * environment asks for a watchdog (WATCHDOG_USEC, systemd's WatchdogSec=), it is told twice in that
 * time that the loop turns. */
struct dv_vitals *dv_vitals_new(struct dv_loop *loop, struct dv_metrics *metrics);
/* Begins to measure: how long starting took is forgotten. */
void dv_vitals_begin(struct dv_vitals *vitals);
void dv_vitals_free(struct dv_vitals *vitals); /* NULL is fine; before the metrics are freed */

#endif
