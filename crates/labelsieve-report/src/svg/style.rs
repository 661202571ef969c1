//! The one stylesheet of all figures. In the page its colours are CSS variables, which follow the theme; in a file of its
//! own they are written out, for viewers without support for variables, once for light and once for dark.

/// Whether the page is light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// A colour of figures in both themes.
struct Colour {
    variable: &'static str,
    light: &'static str,
    dark: &'static str,
}

impl Colour {
    const fn new(variable: &'static str, light: &'static str, dark: &'static str) -> Colour {
        Colour { variable, light, dark }
    }

    fn of(&self, theme: Theme) -> &'static str {
        match theme {
            Theme::Light => self.light,
            Theme::Dark => self.dark,
        }
    }
}

/// The series are Okabe and Ito's colours, which colour-blind people can distinguish, made darker or
/// lighter for contrast with the paper.
const COLOURS: [Colour; 13] = [
    Colour::new("--fig-paper", "#ffffff", "#16181d"),
    Colour::new("--fig-ink", "#1d2129", "#e8eaed"),
    Colour::new("--fig-muted", "#5c6370", "#a2a9b4"),
    Colour::new("--fig-grid", "#e4e7ec", "#2b2f37"),
    Colour::new("--fig-axis", "#9aa1ad", "#6b727e"),
    Colour::new("--fig-s0", "#0072b2", "#56b4e9"),
    Colour::new("--fig-s1", "#c75000", "#f5904d"),
    Colour::new("--fig-s2", "#00805d", "#35c79b"),
    Colour::new("--fig-s3", "#a8447f", "#e393c2"),
    Colour::new("--fig-s4", "#946300", "#e6b445"),
    Colour::new("--fig-s5", "#5b4bb5", "#ab9df2"),
    Colour::new("--fig-s6", "#5c6370", "#b3bac5"),
    Colour::new("--fig-s7", "#2a93c4", "#8fd0f5"),
];

/// Series with a colour of their own; further ones start over and differ in marker and dashes.
const N_SERIES: usize = 8;

const RULES: &str = "
.fig text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:var(--fig-ink)}
.fig .heading{font-size:15px;font-weight:600}
.fig .name{font-weight:600}
.fig .tick,.fig .muted{fill:var(--fig-muted)}
.fig .tick{font-variant-numeric:tabular-nums}
.fig .paper{fill:var(--fig-paper)}
.fig .grid{stroke:var(--fig-grid);stroke-width:1}
.fig .axis{stroke:var(--fig-axis);stroke-width:1}
.fig .guide{stroke:var(--fig-axis);stroke-width:1;stroke-dasharray:3 4}
.fig .line{fill:none;stroke:var(--fig-ink);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.fig .thin{fill:none;stroke:var(--fig-muted);stroke-width:1;stroke-opacity:.3;stroke-linejoin:round}
.fig .dash{stroke-dasharray:6 4}
.fig .dots{stroke-dasharray:1 4}
.fig .whisker{fill:none;stroke-width:1.3}
.fig .ink{stroke:var(--fig-ink)}
.fig .fill{stroke:var(--fig-paper);stroke-width:1}
.fig .area{fill-opacity:.28}
.fig .halo{stroke:var(--fig-paper);stroke-width:3;paint-order:stroke;stroke-linejoin:round}
";

/// The class of series `number`.
pub(crate) fn series(number: usize) -> String {
    format!("s{}", number % N_SERIES)
}

/// The dashes of series `number`: a second way to distinguish curves.
pub(crate) fn dashes(number: usize) -> &'static str {
    match number % 3 {
        0 => "",
        1 => " dash",
        _ => " dots",
    }
}

/// The rules for the page, where the variables are defined by [`variables`].
pub(crate) fn rules() -> String {
    let mut rules = RULES.to_owned();
    for number in 0..N_SERIES {
        let colour = format!("var(--fig-s{number})");
        rules += &format!(
            ".fig .s{number}.line,.fig .s{number}.whisker,.fig .s{number}.edge{{stroke:{colour}}}\
             .fig .s{number}.fill,.fig .s{number}.area{{fill:{colour}}}\n"
        );
    }
    rules
}

/// The colours as declarations of variables, light or dark.
pub(crate) fn variables(theme: Theme) -> String {
    COLOURS.iter().map(|colour| format!("{}:{};", colour.variable, colour.of(theme))).collect()
}

/// The rules with their colours written out.
pub(crate) fn standalone() -> String {
    let written_out = |theme: Theme| {
        COLOURS.iter().fold(rules(), |rules, colour| {
            rules.replace(&format!("var({})", colour.variable), colour.of(theme))
        })
    };
    format!("{}@media (prefers-color-scheme:dark){{{}}}", written_out(Theme::Light), written_out(Theme::Dark))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance and contrast as the Web Content Accessibility Guidelines define them.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |colour: &str| {
            let channel = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        let a = luminance(a);
        let b = luminance(b);
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn colours_have_the_contrast_that_graphics_and_texts_need() {
        let papers = &COLOURS[0];
        for colour in &COLOURS {
            let name = colour.variable;
            let needed = match name {
                "--fig-ink" | "--fig-muted" => 4.5,
                name if name.starts_with("--fig-s") => 3.0,
                _ => continue,
            };
            for theme in [Theme::Light, Theme::Dark] {
                let ink = colour.of(theme);
                let paper = papers.of(theme);
                let found = contrast(ink, paper);
                assert!(found >= needed, "{name} {ink} on {paper}: {found:.2}");
            }
        }
    }

    #[test]
    fn no_variable_is_left_in_a_file_of_its_own() {
        assert!(rules().contains("var(--fig-s7)") && !standalone().contains("var("));
        assert!(variables(Theme::Dark).contains("--fig-ink:#e8eaed;"));
    }
}
