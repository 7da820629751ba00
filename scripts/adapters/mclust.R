# mclust's EM with full covariances, from a hierarchical clustering; docs/LEARNERS.md describes the protocol.
#     Rscript mclust.R learn TRAIN MODEL K SEED
#     Rscript mclust.R score MODEL TEST SCORES
fail <- function(why) {
    # The last line of standard error explains a failure, so nothing may follow it.
    message(gsub("\\s+", " ", why))
    quit(status = 1)
}
if (!suppressWarnings(suppressMessages(require(mclust, quietly = TRUE)))) fail("the R package mclust is not installed")
words <- commandArgs(trailingOnly = TRUE)
read_rows <- function(path) as.matrix(read.csv(path, check.names = FALSE))

learn <- function(train, to, k, seed) {
    set.seed(seed)
    rows <- read_rows(train)
    # The unrestricted model is called V with one column.
    name <- if (ncol(rows) == 1) "V" else "VVV"
    model <- suppressWarnings(densityMclust(rows, G = k, modelNames = name, plot = FALSE, verbose = FALSE))
    if (is.null(model)) fail(paste("mclust finds no mixture of", k, "components"))
    saveRDS(model, to)
}

score <- function(from, test, to) {
    densities <- predict(readRDS(from), read_rows(test), what = "dens", logarithm = TRUE)
    writeLines(sprintf("%.17g", densities), to)
}

done <- try(switch(words[1],
    learn = learn(words[2], words[3], as.integer(words[4]), as.integer(words[5])),
    score = score(words[2], words[3], words[4]),
    fail("the first argument is 'learn' or 'score'")), silent = TRUE)
if (inherits(done, "try-error")) fail(conditionMessage(attr(done, "condition")))
