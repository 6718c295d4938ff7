//! A view that stays on the terminal and is refreshed.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, queue, style, terminal};

use crate::error::ExploreError;

/// The longest time until a signal is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LEAST_INTERVAL: Duration = Duration::from_millis(200);
const MOST_INTERVAL: Duration = Duration::from_secs(60);

/// The terminal during a view: the alternate screen, raw keys, no cursor. Dropping it restores
/// everything, also on a panic.
struct Screen;

impl Screen {
    fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Shows the lines from `first` on, and the status line; lines are overwritten, so nothing
    /// flickers.
    fn show(text: &str, first: usize, status: &str) -> io::Result<()> {
        let (columns, rows) = size()?;
        let mut out = io::stdout().lock();
        queue!(out, terminal::BeginSynchronizedUpdate)?;
        let room = rows.saturating_sub(1);
        let mut lines = text.lines().skip(first);
        for row in 0..room {
            queue!(out, cursor::MoveTo(0, row))?;
            let line = lines.next().unwrap_or_default();
            queue!(out, style::Print(fitting(line, usize::from(columns))))?;
            queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        }
        let status = fitting(status, usize::from(columns));
        queue!(out, cursor::MoveTo(0, room), style::SetAttribute(style::Attribute::Reverse))?;
        queue!(out, style::Print(status), terminal::Clear(terminal::ClearType::UntilNewLine))?;
        queue!(out, style::SetAttribute(style::Attribute::Reset))?;
        queue!(out, terminal::EndSynchronizedUpdate)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// Returns columns and rows; a terminal without a size (a serial port) is treated as 80 x 24.
fn size() -> io::Result<(u16, u16)> {
    let (columns, rows) = terminal::size()?;
    Ok((if columns == 0 { 80 } else { columns }, if rows == 0 { 24 } else { rows }))
}

/// Cuts `line` to at most `columns`; escape sequences have no width, and colour ends with the line.
fn fitting(line: &str, columns: usize) -> String {
    let mut out = String::new();
    let (mut used, mut in_escape, mut escaped) = (0, false, false);
    for c in line.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => (in_escape, escaped) = (true, true),
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, _) if used == columns => break,
            (false, _) => used += 1,
        }
        out.push(c);
    }
    if escaped {
        out.push_str("\u{1b}[0m");
    }
    out
}

/// The state that keys change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watching {
    interval: Duration,
    paused: bool,
    first_line: usize,
    done: bool,
    renew: bool,
}

impl Watching {
    fn heed(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => self.done = true,
            KeyCode::Char('q') | KeyCode::Esc => self.done = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('+') => self.interval = (self.interval * 2).min(MOST_INTERVAL),
            KeyCode::Char('-') => self.interval = (self.interval / 2).max(LEAST_INTERVAL),
            KeyCode::Char('r') => self.renew = true,
            KeyCode::Down | KeyCode::Char('j') => self.first_line += 1,
            KeyCode::Up | KeyCode::Char('k') => {
                self.first_line = self.first_line.saturating_sub(1);
            }
            KeyCode::PageDown => self.first_line += 10,
            KeyCode::PageUp => self.first_line = self.first_line.saturating_sub(10),
            KeyCode::Home => self.first_line = 0,
            _ => {}
        }
    }

    fn status(&self, lines: usize) -> String {
        let state = if self.paused { "paused" } else { "q quit  p pause" };
        let seconds = self.interval.as_secs_f64();
        format!(
            " {state}  +/- every {seconds:.1} s  r now  arrows scroll ({}/{lines})",
            self.first_line + 1
        )
    }
}

/// Shows the result of `look`, again every `interval`, until the user presses q or `ended` returns
/// true; returns false if `look` returned `None`. The terminal is restored in every case.
///
/// # Errors
/// [`ExploreError::Terminal`], and the errors of `look`.
pub fn watch<E: From<ExploreError>>(
    interval: Duration,
    ended: impl Fn() -> bool,
    mut look: impl FnMut() -> Result<Option<String>, E>,
) -> Result<bool, E> {
    let Some(mut text) = look()? else { return Ok(false) };
    let _screen = Screen::take().map_err(ExploreError::Terminal)?;
    let mut state = Watching { interval, paused: false, first_line: 0, done: false, renew: false };
    let mut looked = Instant::now();
    while !state.done && !ended() {
        let lines = text.lines().count();
        state.first_line = state.first_line.min(lines.saturating_sub(1));
        Screen::show(&text, state.first_line, &state.status(lines))
            .map_err(ExploreError::Terminal)?;
        let deadline = looked + state.interval;
        if !wait(&mut state, deadline, &ended).map_err(ExploreError::Terminal)? {
            continue;
        }
        let Some(next) = look()? else { return Ok(false) };
        text = next;
        looked = Instant::now();
    }
    Ok(true)
}

/// Waits for a key or the deadline; returns true if it is time for a refresh.
fn wait(state: &mut Watching, deadline: Instant, ended: &impl Fn() -> bool) -> io::Result<bool> {
    loop {
        let now = Instant::now();
        let due = now >= deadline && !state.paused;
        if due || ended() {
            return Ok(due);
        }
        let left = if state.paused { LOOK_EVERY } else { deadline - now };
        if !event::poll(left.min(LOOK_EVERY))? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            state.heed(key);
        }
        return Ok(std::mem::take(&mut state.renew));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_terminal_and_its_colour_ends() {
        assert_eq!(fitting("\u{1b}[31mabcdef\u{1b}[0m", 3), "\u{1b}[31mabc\u{1b}[0m");
        assert_eq!(fitting("abc", 80), "abc");
    }

    #[test]
    fn keys_pause_scroll_and_end() {
        let press =
            |state: &mut Watching, code| state.heed(KeyEvent::new(code, KeyModifiers::NONE));
        let interval = Duration::from_secs(1);
        let mut state =
            Watching { interval, paused: false, first_line: 0, done: false, renew: false };
        press(&mut state, KeyCode::Char('p'));
        press(&mut state, KeyCode::PageDown);
        press(&mut state, KeyCode::Up);
        press(&mut state, KeyCode::Char('-'));
        assert_eq!((state.paused, state.first_line), (true, 9));
        assert_eq!(state.interval, Duration::from_millis(500));
        press(&mut state, KeyCode::Char('q'));
        assert!(state.done);
    }
}
