//! Listens at rank 0's host: at its addresses on the job's network, and no others.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};

/// Listens at the first of these ports that is free, at addresses that this host has by one of
/// these names, or from which it reaches one of them.
pub(super) fn listen(names: &[String], ports: &[u16]) -> io::Result<Vec<TcpListener>> {
    let mut last = io::Error::other("none of the names has an address of this host");
    let addresses = addresses(names);
    for &port in ports {
        let mut listeners = Vec::new();
        for &address in &addresses {
            let bound = TcpListener::bind(SocketAddr::new(address, port));
            match bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener)) {
                Ok(listener) => listeners.push(listener),
                Err(error) => last = error,
            }
        }
        if !listeners.is_empty() {
            return Ok(listeners);
        }
    }
    Err(last)
}

/// Returns addresses that may be this host's on the job's network. A name may have a loopback
/// address on this host and another one elsewhere (`127.0.1.1` in `/etc/hosts`), so the source
/// address of the route to the other names counts too.
fn addresses(names: &[String]) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let found = names.iter().filter_map(|name| (name.as_str(), 9).to_socket_addrs().ok()).flatten();
    for named in found {
        for address in std::iter::once(named.ip()).chain(own_towards(named)) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    addresses
}

/// Returns the address that this host would send from; connecting a UDP socket sends nothing.
fn own_towards(there: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if there.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(there).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_names_are_used() {
        let listeners = listen(&["127.0.0.1".to_owned()], &[0]).unwrap();
        let at: Vec<IpAddr> = listeners.iter().map(|l| l.local_addr().unwrap().ip()).collect();
        assert_eq!(at, [IpAddr::from([127, 0, 0, 1])]);
        assert!(listen(&["no-such-host.invalid".to_owned()], &[0]).is_err());
    }
}
