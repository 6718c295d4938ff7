//! Numbers read back from drawings.

/// Returns an attribute of every element that begins like this: `<rect class="f0"`.
pub(super) fn numbers(drawing: &str, element: &str, attribute: &str) -> Vec<f64> {
    let name = format!(" {attribute}=\"");
    let number = |rest: &str| {
        let tag = rest.split('>').next()?;
        let value = tag.split_once(&name)?.1.split('"').next()?;
        value.parse().ok()
    };
    drawing.split(element).skip(1).filter_map(number).collect()
}
