//! The threads of a QEMU that run vCPUs and I/O.

use serde_json::Value;

use super::client::{QmpClient, QmpError, not_understood};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// Index, which is also the number in the guest's Linux.
    pub index: u32,
    pub thread: u32,
    /// The guest node that the vCPU belongs to.
    pub node: Option<u32>,
}

/// A thread for I/O (`-object iothread`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoThread {
    pub name: String,
    pub thread: u32,
}

/// Returns the vCPUs, by index.
pub fn vcpus(qemu: &mut QmpClient) -> Result<Vec<Vcpu>, QmpError> {
    let command = "query-cpus-fast";
    let mut cpus = each(qemu, command, "cpu-index and thread-id", |cpu| {
        Some(Vcpu {
            index: number(&cpu["cpu-index"])?,
            thread: number(&cpu["thread-id"])?,
            node: number(&cpu["props"]["node-id"]),
        })
    })?;
    cpus.sort_by_key(|cpu| cpu.index);
    Ok(cpus)
}

/// Returns the threads for I/O.
pub fn io_threads(qemu: &mut QmpClient) -> Result<Vec<IoThread>, QmpError> {
    each(qemu, "query-iothreads", "id and thread-id", |thread| {
        Some(IoThread {
            name: thread["id"].as_str()?.to_owned(),
            thread: number(&thread["thread-id"])?,
        })
    })
}

fn each<T>(
    qemu: &mut QmpClient,
    command: &str,
    expected: &'static str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, QmpError> {
    let answer = qemu.execute(command, &Value::Null)?;
    let list = answer.as_array().map(|list| list.iter().map(&read).collect());
    let read: Option<Vec<T>> = list.flatten();
    read.ok_or_else(|| not_understood(command, &answer.to_string(), expected))
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;

    #[test]
    fn vcpus_come_by_index_with_thread_and_node() {
        let answer = r#"{"return": [
            {"cpu-index": 1, "thread-id": 4243, "props": {"node-id": 1, "socket-id": 1}},
            {"cpu-index": 0, "thread-id": 4242, "props": {"socket-id": 0}}]}"#;
        let mut qemu = scripted(vec![answer.replace('\n', "")]);
        let found = vcpus(&mut qemu).unwrap();
        let first = Vcpu { index: 0, thread: 4242, node: None };
        assert_eq!(found[0], first);
        assert_eq!(found[1].node, Some(1));
    }

    #[test]
    fn an_answer_of_unexpected_form_is_quoted() {
        let mut qemu = scripted(vec![r#"{"return": [{"cpu": 1}]}"#.to_owned()]);
        let error = vcpus(&mut qemu).unwrap_err();
        assert!(error.to_string().contains("cpu-index"), "{error}");
    }
}
