//! Creates the domains, one after another, and waits for their first response.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use numalab_host::CommandError;

use super::{Agent, AgentError, CreatedDomain, versions};
use crate::xen::domain::{READY, STATE};
use crate::xen::event::{LostPhase, XenEvent};
use crate::xen::plan::{DomainPlan, Pinning};
use crate::xen::text::{ListedDomain, read_list};
use crate::xen::xenstore::XenstoreError;

const CONFIGURATIONS: &str = "/run/numalab";
/// The watch that fires when domains have ended (`docs/misc/xenstore.txt`).
const RELEASED: &str = "@releaseDomain";
/// The longest time between two queries of the toolstack for living domains.
const LOOK_EVERY: Duration = Duration::from_secs(20);

impl Agent<'_> {
    pub(super) fn create_all(&mut self) -> Result<(), AgentError> {
        fs::create_dir_all(CONFIGURATIONS)
            .map_err(|source| AgentError::Step { step: CONFIGURATIONS.to_owned(), source })?;
        self.store.watch(RELEASED, RELEASED)?;
        let plan = self.plan;
        let first = plan.domains.first().filter(|_| plan.restores);
        let saved = first.map(|first| self.save_one(first)).transpose()?;
        let saved = first.zip(saved);
        for (index, domain) in plan.domains.iter().enumerate() {
            let began = Instant::now();
            let like_it = saved.as_ref().filter(|(first, _)| first.can_become(domain));
            match self.create(domain, like_it.map(|(_, file)| file.as_path())) {
                Ok(id) => {
                    self.waits_for(CreatedDomain { index, name: domain.name.clone(), id })?;
                    let (domain, seconds) = (domain.name.clone(), began.elapsed().as_secs_f64());
                    self.tell(XenEvent::Created { domain, id, seconds })?;
                }
                // The next domains would be refused too.
                Err(reason) if self.made.is_empty() && versions::is_refusal(&reason) => {
                    return Err(AgentError::Refused { domain: domain.name.clone(), reason });
                }
                Err(reason) => self.lose(&domain.name, LostPhase::Create, reason)?,
            }
        }
        Ok(())
    }

    /// Records a created domain, and begins to watch its state.
    pub(super) fn waits_for(&mut self, made: CreatedDomain) -> Result<(), XenstoreError> {
        self.store.watch(&state_path(made.id), &made.name)?;
        self.made.push(made);
        Ok(())
    }

    /// Boots one domain, or restores it from the saved state of another; the remains of a failed
    /// one are removed.
    pub(super) fn create(
        &mut self,
        domain: &DomainPlan,
        saved: Option<&Path>,
    ) -> Result<u32, String> {
        let file = format!("{CONFIGURATIONS}/{}.cfg", domain.name);
        let text = domain.configuration(&self.plan.kernel, &self.plan.image);
        fs::write(&file, text).map_err(|error| format!("{file}: {error}"))?;
        let paused = domain.pinning == Pinning::Cpus;
        let saved = saved.map(Path::to_string_lossy);
        let mut arguments = match saved {
            Some(_) => vec!["restore", "-e"],
            None => vec!["create", "-q", "-e"],
        };
        arguments.extend(paused.then_some("-p"));
        arguments.push(&file);
        arguments.extend(saved.as_deref());
        let created = self.xl(&arguments).map_err(|error| message(&error));
        let id = self.id_of(&domain.name);
        if let Some(id) = id {
            let (index, name) = (self.leftovers.len(), domain.name.clone());
            self.leftovers.push(CreatedDomain { index, name, id });
        }
        let pinned = created.and_then(|_| match paused {
            true => self.pin(domain),
            false => Ok(()),
        });
        match (pinned, id) {
            (Ok(()), Some(id)) => Ok(id),
            (Ok(()), None) => {
                Err(format!("xl {} succeeded, but there is no such domain", arguments[0]))
            }
            (Err(reason), id) => {
                if let Some(id) = id {
                    // The domain may have ended by itself.
                    let _ = self.xl(&["destroy", &id.to_string()]);
                }
                Err(reason)
            }
        }
    }

    /// Pins the cpus of a domain whose memory has already been allocated, and lets it run.
    fn pin(&self, domain: &DomainPlan) -> Result<(), String> {
        let pinned = self.xl(&["vcpu-pin", &domain.name, "all", &domain.cpus]);
        pinned.map_err(|error| message(&error))?;
        self.xl(&["unpause", &domain.name]).map(drop).map_err(|error| message(&error))
    }

    fn id_of(&mut self, name: &str) -> Option<u32> {
        let ids = self.store.names("/local/domain").ok()?;
        let mut ids = ids.into_iter().filter_map(|id| id.parse::<u32>().ok());
        ids.find(|id| {
            let path = format!("/local/domain/{id}/name");
            self.store.text(&path).ok().flatten().as_deref() == Some(name)
        })
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<(), AgentError> {
        let limit = Duration::from_secs(self.plan.limits.ready_s);
        self.wait_for_state(READY, LostPhase::Boot, limit)
    }

    /// Waits until every domain has this state; a domain that ends or takes too long is lost.
    pub(super) fn wait_for_state(
        &mut self,
        wanted: &str,
        phase: LostPhase,
        limit: Duration,
    ) -> Result<(), AgentError> {
        let end = Instant::now() + limit;
        let mut looked = Instant::now();
        loop {
            let mut pending = Vec::new();
            for domain in self.made.clone() {
                if self.store.text(&state_path(domain.id))?.as_deref() != Some(wanted) {
                    pending.push(domain);
                }
            }
            if pending.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                for domain in pending {
                    let reason = format!("not {wanted:?} after {limit:?}{}", console(&domain.name));
                    self.lose(&domain.name, phase, reason)?;
                }
                return Ok(());
            }
            let released = self.store.change()?.is_some_and(|change| change.token == RELEASED);
            if released || looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                self.lose_ended(&pending, phase)?;
            }
        }
    }

    fn lose_ended(
        &mut self,
        pending: &[CreatedDomain],
        phase: LostPhase,
    ) -> Result<(), AgentError> {
        let listed = read_list(&self.xl(&["list"])?);
        for domain in pending {
            let line = listed.iter().find(|line| line.domain == domain.id);
            if let Some(reason) = ended(line) {
                let reason = format!("{reason}{}", console(&domain.name));
                self.lose(&domain.name, phase, reason)?;
            }
        }
        Ok(())
    }
}

/// Returns the xenstore path of a domain's state.
pub(super) fn state_path(id: u32) -> String {
    format!("/local/domain/{id}/{STATE}")
}

/// Returns the reason why a domain is not running; `None` if it is.
fn ended(line: Option<&ListedDomain>) -> Option<String> {
    let Some(line) = line else { return Some("the domain is gone".to_owned()) };
    let reason = match () {
        () if line.state.contains('c') => "the domain crashed",
        () if line.state.contains('s') => "the domain shut itself down",
        () if line.state.contains('d') => "the domain is dying",
        () => return None,
    };
    Some(format!("{reason} (state {})", line.state))
}

/// Returns the panic on the domain's console, or its last line, which often give the reason.
pub(super) fn console(name: &str) -> String {
    let path = format!("/var/log/xen/console/guest-{name}.log");
    let text = fs::read(path).unwrap_or_default();
    telling(&String::from_utf8_lossy(&text))
}

fn telling(console: &str) -> String {
    let mut lines = console.lines().map(str::trim).filter(|line| !line.is_empty());
    let panic = lines.clone().find(|line| line.contains("Kernel panic"));
    let line = panic.or_else(|| lines.next_back());
    line.map_or(String::new(), |line| format!("; its console: {line}"))
}

/// Returns a tool's error message in one line.
fn message(error: &CommandError) -> String {
    let lines: Vec<String> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_on_a_console_is_reported_or_else_its_last_line() {
        let panicked = "booting\n[ 1.0] Kernel panic - not syncing: no init\n[ 1.1] Offset\n";
        assert!(telling(panicked).ends_with("Kernel panic - not syncing: no init"));
        assert_eq!(telling("one\ntwo\n\n"), "; its console: two");
        assert_eq!(telling(""), "");
    }

    #[test]
    fn a_domain_that_has_stopped_is_reported_with_its_state() {
        let line = |state: &str| ListedDomain {
            name: "d1".to_owned(),
            domain: 1,
            memory_bytes: 128 << 20,
            state: state.to_owned(),
            nodes: None,
        };
        for running in ["r-----", "-b----", "--p---", "------"] {
            assert_eq!(ended(Some(&line(running))), None);
        }
        assert_eq!(ended(Some(&line("----c-"))).unwrap(), "the domain crashed (state ----c-)");
        assert!(ended(Some(&line("---s--"))).unwrap().contains("shut itself down"));
        assert_eq!(ended(None).unwrap(), "the domain is gone");
    }
}
