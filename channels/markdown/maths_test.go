package markdown_test

import (
	"strings"
	"testing"

	"parley/channels/markdown"
)

// Formulas are kept as they are written, whatever marks of Markdown they have.
func TestFormulas(t *testing.T) {
	for src, want := range map[string]string{
		`so $a_1 * b_2 * c$ holds`:         `<p>so <span class="math">$a_1 * b_2 * c$</span> holds</p>`,
		`$x$, $n-1$ and ($y$)`:             `<p><span class="math">$x$</span>, <span class="math">$n-1$</span> and (<span class="math">$y$</span>)</p>`,
		`**$x<y$**`:                        `<p><strong><span class="math">$x&lt;y$</span></strong></p>`,
		`$x \text{ if } y \text{ is odd}$`: `<p><span class="math">$x \text{ if } y \text{ is odd}$</span></p>`,
		`$f(x) + g(x)$`:                    `<p><span class="math">$f(x) + g(x)$</span></p>`,
		`$\$5 + x$`:                        `<p><span class="math">$\$5 + x$</span></p>`,
		`by \(a \ge b\) and \[c\] it`:      `<p>by <span class="math">\(a \ge b\)</span> and <span class="math">\[c\]</span> it</p>`,
		"by \\(a +\nb\\) it":               "<p>by <span class=\"math\">\\(a +\nb\\)</span> it</p>",
		`so $$x^2$$ it is`:                 `<p>so <span class="math">$$x^2$$</span> it is</p>`,
		"$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$\nthen": "<div class=\"math\">$$\n\\begin{aligned}\na &amp;= b \\\\\nc &amp;= d\n\\end{aligned}\n$$</div>\n<p>then</p>",
		"so\n\\[ x \\]\nand":                "<p>so</p>\n<div class=\"math\">\\[ x \\]</div>\n<p>and</p>",
		"$$ E = mc^2 $$":                    `<div class="math">$$ E = mc^2 $$</div>`,
		"1. so\n   $$\n   x\n   $$\n2. and": "<ol>\n<li>so\n<div class=\"math\">$$\nx\n$$</div>\n</li>\n<li>and</li>\n</ol>",
		"> $$\n> x\n> $$":                   "<blockquote>\n<div class=\"math\">$$\nx\n$$</div>\n</blockquote>",
	} {
		if got := strings.TrimSpace(markdown.HTML(src)); got != want {
			t.Errorf("HTML(%q)\n got %s\nwant %s", src, got, want)
		}
	}
}

// Money, variables and what is not finished are text.
func TestMoney(t *testing.T) {
	for _, src := range []string{
		"It costs $5 and up to $10.", "$5-$10 a month", "US$5, A$6", "from $5 to 10$ or so", "$20 (about €18), and he paid 30$.",
		"$HOME/bin:$PATH", "$HOME/$USER", "the $variable is here and costs 5$ more", "a $ alone", "$ 5 $", "$$", "$$$", "$$$$", "$5,000/$6,000",
		"$100 + tax = $108", "cash: $$ is a lot", "$5 for a coffee = too much, 6$ is worse", `\(`, `\[ never closed`, "$$\nx", "$x",
		`\$5 and \$6`, "costs $5, use `echo $`", "costs 5$, or 6$", "$1.50–$2.50", "`$x$`", "```\n$x$\n```", `\( \)`,
	} {
		if got := markdown.HTML(src); strings.Contains(got, "math") {
			t.Errorf("HTML(%q) = %s", src, got)
		}
	}
}
