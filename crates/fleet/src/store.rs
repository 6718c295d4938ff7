//! One SQLite file with what is kept of every run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use numalab_analysis::fleet::{Family, FigureKey, HostRun};
use numalab_record::Metric;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::error::FleetError;
use crate::model::{Digest, DigestFigure};

/// `PRAGMA user_version` of a store.
const VERSION: i64 = 1;

/// Texts and keys stand once, so that a run takes a few kilobytes.
const SCHEMA: &str = "
CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE figure_key(
  id INTEGER PRIMARY KEY, cell TEXT NOT NULL, metric TEXT NOT NULL, family TEXT NOT NULL,
  memory_node INTEGER, package INTEGER);
CREATE TABLE run(
  id INTEGER PRIMARY KEY, host TEXT NOT NULL, path TEXT NOT NULL UNIQUE,
  fingerprint TEXT NOT NULL, started_unix_ms INTEGER NOT NULL, version TEXT NOT NULL,
  command TEXT NOT NULL, planned INTEGER NOT NULL, ended INTEGER NOT NULL);
CREATE INDEX run_host ON run(host, started_unix_ms);
CREATE TABLE fact(
  run INTEGER NOT NULL, name INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY(run, name)) WITHOUT ROWID;
CREATE TABLE figure(
  run INTEGER NOT NULL, key INTEGER NOT NULL, median REAL NOT NULL, spread REAL NOT NULL,
  samples INTEGER NOT NULL, PRIMARY KEY(run, key)) WITHOUT ROWID;
";

/// The store of a fleet.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Connection,
}

impl Store {
    /// Opens the file; one that is not there is made if `make` is set.
    ///
    /// # Errors
    /// [`FleetError::NothingCollected`], [`FleetError::Store`] and [`FleetError::Version`].
    pub fn open(path: &Path, make: bool) -> Result<Self, FleetError> {
        if !make && !path.exists() {
            return Err(FleetError::NothingCollected { path: path.to_owned() });
        }
        let database = Connection::open(path);
        let database =
            database.map_err(|source| FleetError::Store { path: path.to_owned(), source })?;
        let store = Self { path: path.to_owned(), database };
        store.prepare()?;
        Ok(store)
    }

    fn prepare(&self) -> Result<(), FleetError> {
        let query = |pragma: &str| self.database.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let found = self.check(query("PRAGMA user_version"))?;
        let tables = self.check(query("SELECT count(*) FROM sqlite_master"))?;
        if found == VERSION {
            return Ok(());
        }
        if found != 0 || tables != 0 {
            return Err(FleetError::Version { path: self.path.clone(), found, expected: VERSION });
        }
        let script = format!("BEGIN; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;");
        self.check(self.database.execute_batch(&script))
    }

    fn check<T>(&self, result: rusqlite::Result<T>) -> Result<T, FleetError> {
        result.map_err(|source| FleetError::Store { path: self.path.clone(), source })
    }

    /// What each run looked like when it was collected, by its path.
    pub(crate) fn fingerprints(&self) -> Result<HashMap<String, String>, FleetError> {
        let read = || {
            let mut query = self.database.prepare("SELECT path, fingerprint FROM run")?;
            query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        self.check(read())
    }

    /// Begins to write: all of it counts, or nothing.
    pub(crate) fn writing(&mut self) -> Result<Writing<'_>, FleetError> {
        let path = self.path.clone();
        let fail = |source| FleetError::Store { path: path.clone(), source };
        let transaction = self.database.transaction().map_err(fail)?;
        let (texts, keys) = known(&transaction).map_err(fail)?;
        Ok(Writing { path, transaction, texts, keys })
    }

    /// Every key, and the last run of every host by its name.
    ///
    /// # Errors
    /// [`FleetError::Store`].
    pub fn latest(&self) -> Result<(Vec<FigureKey>, Vec<HostRun>), FleetError> {
        self.check(latest(&self.database))
    }
}

type Known = (HashMap<String, i64>, HashMap<FigureKey, i64>);

fn known(database: &Connection) -> rusqlite::Result<Known> {
    let mut query = database.prepare("SELECT text, id FROM text")?;
    let texts =
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let keys = keys(database)?.into_iter().map(|(id, key)| (key, id)).collect();
    Ok((texts, keys))
}

fn keys(database: &Connection) -> rusqlite::Result<Vec<(i64, FigureKey)>> {
    let mut query = database.prepare(
        "SELECT id, cell, metric, family, memory_node, package FROM figure_key ORDER BY id",
    )?;
    let mut rows = query.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let (metric, family): (String, String) = (row.get(2)?, row.get(3)?);
        let metric = Metric::ALL.into_iter().find(|known| known.name() == metric);
        // A key that this version does not know is passed over.
        let (Some(metric), Some(family)) = (metric, Family::named(&family)) else { continue };
        let (cell, memory_node, package) = (row.get(1)?, row.get(4)?, row.get(5)?);
        keys.push((row.get(0)?, FigureKey { cell, metric, family, memory_node, package }));
    }
    Ok(keys)
}

/// A collection in the making.
pub(crate) struct Writing<'a> {
    path: PathBuf,
    transaction: Transaction<'a>,
    texts: HashMap<String, i64>,
    keys: HashMap<FigureKey, i64>,
}

impl Writing<'_> {
    /// Keeps a run in place of an earlier state of it.
    pub(crate) fn put(
        &mut self,
        host: &str,
        run: &str,
        fingerprint: &str,
        digest: &Digest,
    ) -> Result<(), FleetError> {
        self.put_run(host, run, fingerprint, digest)
            .map_err(|source| FleetError::Store { path: self.path.clone(), source })
    }

    fn put_run(
        &mut self,
        host: &str,
        run: &str,
        fingerprint: &str,
        digest: &Digest,
    ) -> rusqlite::Result<()> {
        let old: Option<i64> = self
            .transaction
            .prepare_cached("SELECT id FROM run WHERE path = ?1")?
            .query_row([run], |row| row.get(0))
            .optional()?;
        for table in ["fact", "figure"] {
            let script = format!("DELETE FROM {table} WHERE run = ?1");
            self.transaction.prepare_cached(&script)?.execute([old])?;
        }
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO run VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                old,
                host,
                run,
                fingerprint,
                i64::try_from(digest.started_unix_ms).unwrap_or(i64::MAX),
                digest.version,
                digest.command,
                i64::try_from(digest.planned).unwrap_or(i64::MAX),
                i64::try_from(digest.ended).unwrap_or(i64::MAX),
            ])?;
        let id = old.unwrap_or_else(|| self.transaction.last_insert_rowid());
        for (name, value) in &digest.facts {
            let (name, value) = (self.text(name)?, self.text(value)?);
            let mut insert =
                self.transaction.prepare_cached("INSERT INTO fact VALUES(?1, ?2, ?3)")?;
            insert.execute([id, name, value])?;
        }
        for figure in &digest.figures {
            let key = self.key(&figure.key)?;
            let DigestFigure { median, spread, samples, .. } = figure;
            let samples = i64::try_from(*samples).unwrap_or(i64::MAX);
            let mut insert = self
                .transaction
                .prepare_cached("INSERT OR REPLACE INTO figure VALUES(?1, ?2, ?3, ?4, ?5)")?;
            insert.execute(params![id, key, median, spread, samples])?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> rusqlite::Result<i64> {
        if let Some(&id) = self.texts.get(text) {
            return Ok(id);
        }
        let mut insert = self.transaction.prepare_cached("INSERT INTO text(text) VALUES(?1)")?;
        let id = insert.insert([text])?;
        drop(insert);
        self.texts.insert(text.to_owned(), id);
        Ok(id)
    }

    fn key(&mut self, key: &FigureKey) -> rusqlite::Result<i64> {
        if let Some(&id) = self.keys.get(key) {
            return Ok(id);
        }
        let mut insert = self.transaction.prepare_cached(
            "INSERT INTO figure_key(cell, metric, family, memory_node, package) VALUES(?1, ?2, ?3, ?4, ?5)",
        )?;
        let id = insert.insert(params![
            key.cell,
            key.metric.name(),
            key.family.name(),
            key.memory_node,
            key.package
        ])?;
        drop(insert);
        self.keys.insert(key.clone(), id);
        Ok(id)
    }

    /// Makes it count.
    pub(crate) fn finish(self) -> Result<(), FleetError> {
        let path = self.path;
        self.transaction.commit().map_err(|source| FleetError::Store { path, source })
    }
}

fn latest(database: &Connection) -> rusqlite::Result<(Vec<FigureKey>, Vec<HostRun>)> {
    let (ids, keys): (Vec<i64>, Vec<FigureKey>) = keys(database)?.into_iter().unzip();
    let place: HashMap<i64, usize> = ids.into_iter().zip(0..).collect();
    // SQLite gives the other columns of the row that has the maximum.
    let mut runs = database.prepare(
        "SELECT id, host, path, max(started_unix_ms), planned, ended FROM run GROUP BY host ORDER BY host",
    )?;
    let mut facts = database.prepare(
        "SELECT n.text, v.text FROM fact JOIN text n ON n.id = name JOIN text v ON v.id = value WHERE run = ?1",
    )?;
    let mut figures = database.prepare("SELECT key, median FROM figure WHERE run = ?1")?;
    let mut before = database.prepare(
        "SELECT id FROM run WHERE host = ?1 AND id != ?2 ORDER BY started_unix_ms DESC LIMIT 1",
    )?;
    let rows = runs.query_map([], |row| {
        let id: i64 = row.get(0)?;
        let count = |at| row.get::<_, i64>(at).map(|count| usize::try_from(count).unwrap_or(0));
        let run = HostRun {
            host: row.get(1)?,
            run: row.get(2)?,
            started_unix_ms: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            planned: count(4)?,
            ended: count(5)?,
            facts: BTreeMap::new(),
            medians: Vec::new(),
            medians_before: None,
        };
        Ok((id, run))
    })?;
    let mut hosts = Vec::new();
    for row in rows {
        let (id, mut run) = row?;
        run.facts = facts
            .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut medians = |id: i64| -> rusqlite::Result<Vec<(usize, f64)>> {
            let rows = figures.query_map([id], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
            let known = rows.filter_map(|row| match row {
                Ok((key, median)) => place.get(&key).map(|&at| Ok((at, median))),
                Err(error) => Some(Err(error)),
            });
            known.collect()
        };
        run.medians = medians(id)?;
        let earlier =
            before.query_row(params![run.host, id], |row| row.get::<_, i64>(0)).optional()?;
        run.medians_before = earlier.map(medians).transpose()?;
        hosts.push(run);
    }
    Ok((keys, hosts))
}
