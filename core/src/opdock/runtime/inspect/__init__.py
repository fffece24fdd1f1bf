"""Looking at programs: explanations, traces, bisection, saved cases."""
