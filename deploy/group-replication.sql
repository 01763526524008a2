-- Once on each node of a new cluster, with your own password:

set sql_log_bin = 0;
create user replication@'%' identified by 'PASSWORD' require ssl;
grant replication slave, connection_admin, backup_admin, group_replication_stream on *.* to replication@'%';
set sql_log_bin = 1;
change replication source to source_user = 'replication', source_password = 'PASSWORD'
  for channel 'group_replication_recovery';
set persist group_replication_start_on_boot = ON;

-- Then on the first node:
--   set global group_replication_bootstrap_group = ON;
--   start group_replication;
--   set global group_replication_bootstrap_group = OFF;
-- and on each of the others:
--   start group_replication;
-- After all three nodes were down together, repeat this (stop group_replication first), beginning with
-- the node whose @@gtid_executed has the most transactions.
