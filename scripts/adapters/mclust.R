# mclust's EM with full covariances (VVV). Not tested: R is not part of the project's tests.
#     Rscript mclust.R learn TRAIN MODEL K SEED
#     Rscript mclust.R score MODEL TEST SCORES
suppressMessages(library(mclust))
words <- commandArgs(trailingOnly = TRUE)
read_rows <- function(path) as.matrix(read.csv(path, check.names = FALSE))
if (words[1] == "learn") {
    set.seed(as.integer(words[5]))
    model <- densityMclust(read_rows(words[2]), G = as.integer(words[4]), modelNames = "VVV", plot = FALSE)
    if (is.null(model)) stop("mclust found no model")
    saveRDS(model, words[3])
} else {
    model <- readRDS(words[2])
    densities <- predict(model, read_rows(words[3]), what = "dens", logarithm = TRUE)
    writeLines(format(densities, digits = 17, trim = TRUE), words[4])
}
