"""Commands that execute runs, judge them, or report on them."""
