// Runs Armadillo's gmm_full on one thread: armadillo_peer TRAIN TEST K prints its figures as JSON.
#include <armadillo>
#include <chrono>
#include <cstdio>
#include <cstdlib>

static const arma::uword KMEANS_ITERATIONS = 10, EM_ITERATIONS = 10;

static double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Transposed, because Armadillo expects one row of the data in each column.
static arma::mat read(const char *path) {
    arma::mat rows;
    arma::field<std::string> header;
    if (!rows.load(arma::csv_name(path, header))) std::exit(1);
    arma::inplace_trans(rows);
    return rows;
}

int main(int, char **arguments) {
    arma::arma_rng::set_seed(1);
    double begun = now();
    const arma::mat rows = read(arguments[1]);
    const double read_seconds = now() - begun;
    arma::gmm_full model;
    begun = now();
    const bool learned = model.learn(rows, std::atoi(arguments[3]), arma::maha_dist, arma::random_subset,
                                     KMEANS_ITERATIONS, EM_ITERATIONS, 1e-10, false);
    const double learn_seconds = now() - begun;
    if (!learned) return 1;
    std::printf("{\"rows\": %llu, \"read_seconds\": %.6f, \"learn_seconds\": %.6f, \"iterations\": %llu, "
                "\"log_likelihood\": %.9f}\n",
                (unsigned long long)rows.n_cols, read_seconds, learn_seconds,
                (unsigned long long)(KMEANS_ITERATIONS + EM_ITERATIONS), model.avg_log_p(read(arguments[2])));
    return 0;
}
