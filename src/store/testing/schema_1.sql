-- A store of schema 1, as the first release's code wrote it (python's iterdump). Never edited.
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE access_keys(key_id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  sealed TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
INSERT INTO "access_keys" VALUES('AK1','A','00ff',1800000000000000);
CREATE TABLE accounts(id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL,
  created_at INTEGER NOT NULL, names_given INTEGER NOT NULL) STRICT;
INSERT INTO "accounts" VALUES('A','安娜','operator',1800000000000000,3);
CREATE TABLE events(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL,
  account TEXT NOT NULL, instance TEXT NOT NULL, run TEXT NOT NULL, actor TEXT NOT NULL,
  data TEXT NOT NULL, message TEXT NOT NULL, request_id TEXT NOT NULL) STRICT;
INSERT INTO "events" VALUES(1,1800000000000000,'created','A','I','','user','{"a":1}','made','req');
INSERT INTO "events" VALUES(2,1800000000000000,'running','A','I','R','platform','{}','','');
CREATE TABLE idempotency(account TEXT NOT NULL, key TEXT NOT NULL, request_hash TEXT NOT NULL,
  status INTEGER NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(account, key)) STRICT, WITHOUT ROWID;
INSERT INTO "idempotency" VALUES('A','key','hash',202,'{"x":1}',1800000000000000);
CREATE TABLE instances(id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  node TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
  remedy TEXT NOT NULL, image TEXT NOT NULL, image_resolved TEXT NOT NULL,
  image_digest TEXT NOT NULL, substituted INTEGER NOT NULL, gpu_type TEXT NOT NULL,
  gpu_count INTEGER NOT NULL, disk_bytes INTEGER NOT NULL, command TEXT, env TEXT NOT NULL,
  workdir TEXT NOT NULL, restart TEXT NOT NULL, max_runtime_s INTEGER, ssh_keys TEXT NOT NULL,
  slot INTEGER NOT NULL, port INTEGER NOT NULL, host_key TEXT NOT NULL,
  image_ready INTEGER NOT NULL, disk_ready INTEGER NOT NULL, release_asked INTEGER NOT NULL,
  run TEXT NOT NULL, run_count INTEGER NOT NULL, created_at INTEGER NOT NULL,
  storage_ms INTEGER NOT NULL, storage_charged_micro INTEGER NOT NULL) STRICT;
INSERT INTO "instances" VALUES('I','A','local','训练 🚀','running','','','a','','',1,'',0,0,'echo ''x''
"y"','{"E":"","K":"a\nb"}','','on-loss',60,'["ssh-ed25519 A","b"]',4,20004,'',0,0,0,'R',0,1800000000000000,0,0);
CREATE TABLE intervals(run TEXT NOT NULL REFERENCES runs(id), number INTEGER NOT NULL,
  from_utc INTEGER NOT NULL, ms INTEGER NOT NULL CHECK(ms >= 0), billed INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY(run, number)) STRICT, WITHOUT ROWID;
INSERT INTO "intervals" VALUES('R',1,1800000000000000,1500,1,'');
CREATE TABLE ledger_balances(account TEXT NOT NULL, book TEXT NOT NULL, run TEXT NOT NULL,
  amount_micro INTEGER NOT NULL CHECK(amount_micro >= 0 OR book NOT IN ('wallet', 'held')),
  PRIMARY KEY(account, book, run)) STRICT, WITHOUT ROWID;
INSERT INTO "ledger_balances" VALUES('A','external','',-5);
INSERT INTO "ledger_balances" VALUES('A','held','',5);
INSERT INTO "ledger_balances" VALUES('A','held','R',5);
INSERT INTO "ledger_balances" VALUES('A','wallet','',0);
CREATE TABLE ledger_entries(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, account TEXT NOT NULL,
  instance TEXT NOT NULL, run TEXT NOT NULL, kind TEXT NOT NULL, from_book TEXT NOT NULL,
  to_book TEXT NOT NULL, amount_micro INTEGER NOT NULL CHECK(amount_micro > 0),
  reason TEXT NOT NULL) STRICT;
INSERT INTO "ledger_entries" VALUES(1,1800000000000000,'A','I','R','hold','wallet','held',5,'start');
CREATE TABLE meta(cluster TEXT NOT NULL, epoch INTEGER NOT NULL) STRICT;
INSERT INTO "meta" VALUES('01MCC5RM002HAJ72ZE9GG2SXQA',1);
CREATE TABLE nonces(key_id TEXT NOT NULL, nonce TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(key_id, nonce)) STRICT, WITHOUT ROWID;
INSERT INTO "nonces" VALUES('AK1','nonce',1800000000000000);
CREATE TABLE runs(id TEXT PRIMARY KEY, instance TEXT NOT NULL REFERENCES instances(id),
  account TEXT NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, outcome TEXT,
  exit_code INTEGER, signal INTEGER, reason TEXT NOT NULL, remedy TEXT NOT NULL,
  gpu_type TEXT NOT NULL, gpu_count INTEGER NOT NULL, cards TEXT NOT NULL,
  price_micro INTEGER NOT NULL, requested_at INTEGER NOT NULL, granted_at INTEGER,
  ready_at INTEGER, ended_at INTEGER, running_ms INTEGER NOT NULL,
  hold_micro INTEGER NOT NULL CHECK(hold_micro >= 0), lease_micro INTEGER NOT NULL,
  settled_micro INTEGER NOT NULL, warned INTEGER NOT NULL, stop TEXT, stop_at_ms INTEGER NOT NULL,
  start_timed_out INTEGER NOT NULL) STRICT;
INSERT INTO "runs" VALUES('R','I','A',1,'stopping',NULL,NULL,9,'','','',0,'["GPU-1","GPU-2"]',0,0,NULL,1800000000000000,NULL,0,5,0,0,0,'rule',0,0);
CREATE TABLE ssh_keys(id TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL, public_key TEXT NOT NULL, created_at INTEGER NOT NULL,
  removed INTEGER NOT NULL) STRICT;
INSERT INTO "ssh_keys" VALUES('K','A','laptop','ssh-ed25519 A',1800000000000000,0);
CREATE TABLE tokens(hash TEXT PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts(id),
  created_at INTEGER NOT NULL) STRICT;
INSERT INTO "tokens" VALUES('hash','A',1800000000000000);
CREATE UNIQUE INDEX instances_port ON instances(port) WHERE port > 0;
CREATE UNIQUE INDEX instances_slot ON instances(slot) WHERE slot >= 0;
CREATE UNIQUE INDEX runs_attempt ON runs(instance, attempt);
CREATE INDEX ledger_entries_account ON ledger_entries(account, instance, seq);
CREATE INDEX events_account ON events(account, seq);
CREATE INDEX events_instance ON events(instance, seq);
COMMIT;
