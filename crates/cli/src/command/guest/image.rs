//! `numalab guest image`.

use numalab_formats::size::format_rounded;
use numalab_guest::Qemu;
use numalab_host::note;
use numalab_image::{Architecture, Cache, CacheEntry, Contents, Image, Kernel};

use super::{boot, kernel};
use crate::args::ImageArgs;
use crate::failure::Failure;
use crate::output::{self, hint};

/// Fills, empties or shows the cache.
pub(super) fn run(args: &ImageArgs) -> Result<(), Failure> {
    if let Some(file) = &args.iso {
        if args.contents.architecture != Architecture::X86_64 {
            return Err(Failure::bad_input("--iso: numalab's own kernel runs on x86_64 only"));
        }
        return kernel::write_image(file, &args.words, args.dry_run);
    }
    let cache = Cache::open()?;
    if args.dry_run {
        return output::print(&intention(args, &cache)?);
    }
    if args.clean {
        cache.clear()?;
    }
    if args.fetch_qemu {
        let mut report = |text: &str| note(text);
        let qemu = Qemu::fetch_backports(&cache, args.contents.architecture, &mut report);
        let qemu = qemu?;
        output::print(&format!("QEMU {}: {}\n", qemu.version, qemu.program.display()))?;
    }
    if args.build {
        let architecture = args.contents.architecture;
        let contents = boot::contents(&args.contents, Contents::own(architecture)?, &[])?;
        let mut note = |text: &str| hint(text);
        let kernel = boot::linux(&args.contents)?;
        let kernel = Kernel::ensure_for(&cache, kernel, architecture, &mut note)?;
        let image = Image::ensure(&cache, &kernel, &contents, &mut note)?;
        let made = if image.cached { "was there" } else { "made" };
        let release = kernel.release;
        return output::print(&format!("image {}: {made}, for Linux {release}\n", image.hash));
    }
    if args.fetch_qemu {
        return Ok(());
    }
    output::print(&listing(&cache)?)
}

/// Describes what the arguments would do.
fn intention(args: &ImageArgs, cache: &Cache) -> Result<String, Failure> {
    let root = cache.root().display();
    if !(args.clean || args.fetch_qemu || args.build) {
        return listing(cache);
    }
    let mut text = String::new();
    if args.clean {
        text.push_str(&format!("would empty {root}:\n{}", listing(cache)?));
    }
    if args.fetch_qemu {
        text.push_str(&format!("would unpack the QEMU of Debian's backports into {root}\n"));
    }
    if args.build {
        boot::contents(&args.contents, Contents::default(), &[])?;
        text.push_str(&format!("would build an image in {root}, unless it exists\n"));
    }
    Ok(text)
}

/// Lists the entries and their total size.
fn listing(cache: &Cache) -> Result<String, Failure> {
    let entries = cache.entries()?;
    let mut text: String = entries.iter().map(line).collect();
    let total = cache.size_bytes()?;
    text.push_str(&format!("{} in {}\n", format_rounded(total), cache.root().display()));
    Ok(text)
}

fn line(entry: &CacheEntry) -> String {
    let kind = entry.kind.name();
    format!("{kind:<8} {:>9}  {}\n", format_rounded(entry.size_bytes), entry.name)
}
