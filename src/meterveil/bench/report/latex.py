"""Tables for LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "▲": r"$\uparrow$",
    "▼": r"$\downarrow$",
    "∅": r"$\emptyset$",
    "…": r"\dots{}",
    "\u00a0": "~",
    "\u2009": r"\,",
}


def latex(rows: Sequence[Sequence[str]], caption: str, columns: str = "") -> str:
    """Write a table for LaTeX with the package booktabs, the head first.

    `columns` is how LaTeX sets them; by default words come first and figures follow.
    """
    head, *body = ([escape_latex(cell) for cell in row] for row in rows)
    lines = [" & ".join(row) + r" \\" for row in body]
    return "\n".join(
        [
            r"% generator: meterveil; needs \usepackage{booktabs}",
            r"\begin{table}",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\begin{{tabular}}{{{columns or 'l' + 'r' * (len(head) - 1)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escape_latex(text: str) -> str:
    """Write text so that LaTeX prints it as it is."""
    return "".join(_LATEX.get(letter, letter) for letter in text)
