# make book · make serve · make test · make chapters · make experiments · make lint · make types · make site-check · make pdf · make epub · make zh · make rehearsal · make turns FILL=…
# PYTHON names the interpreter that .venv is made from (3.11 or newer); PORT is for make serve.
PYTHON ?= python3
PORT ?= 8000
RUN := .venv/bin/python

.PHONY: book serve test chapters experiments lint types site-check pdf epub zh rehearsal turns clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

book: .venv/ready
	@rm -rf _build/html
	.venv/bin/jupyter-book build . --all -W -n --keep-going -q
	@echo "The book is in _build/html: open _build/html/index.html, or make serve."

serve: .venv/ready
	@test -f _build/html/index.html || $(MAKE) --no-print-directory book
	@$(RUN) -m website serve $(PORT)

test: .venv/ready
	$(RUN) -m pytest --nbval

# Runs the chapters whose code or outputs changed, two at a time (JOBS=N), stores their outputs and
# tidies what an editor left; ONLY="01 one_evening" looks at those whose names begin so, ALL=1 runs
# them whether they have changed or not.
chapters: .venv/ready
	@$(RUN) -m tools.chapters $(ONLY) $(if $(ALL),--all) $(if $(JOBS),--jobs $(JOBS))

# Lists the experiments that no page has time for; ONLY=name runs what one lacks, and goes on where
# it was stopped: ONLY=all every one, CHAPTER=N those arms, ARM=… one, JOBS=N at a time, ANEW=1 anew.
experiments: .venv/ready
	@OMP_NUM_THREADS=1 $(RUN) -m tools.experiments $(if $(filter all,$(ONLY)),--all,$(ONLY)) $(if $(ARM),--arm "$(ARM)") $(if $(CHAPTER),--chapter $(CHAPTER)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ANEW),--anew)

# Python, then JavaScript and CSS; `node_modules/.bin/biome check --write` mends what can be mended.
lint: .venv/ready node_modules/.package-lock.json
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	node_modules/.bin/biome ci --error-on-warnings

node_modules/.package-lock.json: package-lock.json
	@command -v npm >/dev/null || { echo "make lint needs npm (Node.js 18 or newer) for Biome: https://nodejs.org"; exit 1; }
	@npm ci --silent --no-audit --no-fund --ignore-scripts --fetch-retries=1 || { echo "npm could not install Biome: is there a network? Of Python alone: .venv/bin/ruff check ."; exit 1; }
	@touch $@

# Checks that the front door's types accept what is right and refuse what is wrong.
types: .venv/ready
	$(RUN) -m mypy

# Builds the site and looks at it in headless Chromium: every page, then how its parts behave.
site-check: book
	@$(RUN) -m website check
	$(RUN) -m pytest tests/site

# The book as one PDF and as one ePub, made from the built site; its pages then link to them.
pdf epub: .venv/ready
	@test -f _build/html/index.html || $(MAKE) --no-print-directory book
	@$(RUN) -m website $@

# The Chinese edition: its site in zh/ of the built one, whose pages then link to it, its PDF and its
# ePub. What a change of the English left behind is said by python -m website zh check.
zh: .venv/ready
	@test -f _build/html/index.html || $(MAKE) --no-print-directory book
	@$(RUN) -m website zh
	@$(RUN) -m website zh pdf
	@$(RUN) -m website zh epub

# Opens each committed chapter as Colab does, in an empty environment; CUDA=1 fails without a GPU,
# SOFT=1 takes a GPU of software, COLAB=1 the versions of tools/colab.txt.
rehearsal: .venv/ready
	@$(RUN) -m tools.rehearsal $(if $(CUDA),--cuda) $(if $(SOFT),--soft) $(if $(COLAB),--colab)

# Runs each chapter as a reader leaves it: FILL=right with every turn and exercise solved, FILL=wrong
# with a mistake in each. It takes as long as make chapters ALL=1 JOBS=1, and stores nothing.
turns: .venv/ready
	@$(RUN) -m tools.turns $(or $(FILL),right)

clean:
	rm -rf _build .venv node_modules .pytest_cache .ruff_cache .mypy_cache .hypothesis

.venv/ready: requirements.txt pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh
