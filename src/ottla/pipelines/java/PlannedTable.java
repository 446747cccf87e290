package ottla;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/** A source whose streams Python in the driver plans and whose tasks are Python's too. */
public class PlannedTable implements SupportsRead, ScanBuilder, Scan {
    private final String name;
    private final StructType schema;
    private final UserDefinedPythonDataSource source;
    private final byte[] read;
    private final Planning planning;

    public PlannedTable(
            String name, StructType schema, UserDefinedPythonDataSource source, byte[] read, Planning planning) {
        this.name = name;
        this.schema = schema;
        this.source = source;
        this.read = read;
        this.planning = planning;
    }

    public String name() {
        return name;
    }

    public StructType schema() {
        return schema;
    }

    public StructType readSchema() {
        return schema;
    }

    public Set capabilities() {
        return EnumSet.of(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return this;
    }

    public Scan build() {
        return this;
    }

    public String description() {
        return name;
    }

    public CustomMetric[] supportedCustomMetrics() {
        return source.createPythonMetrics();
    }

    public Scan.ColumnarSupportMode columnarSupportMode() {
        return Scan.ColumnarSupportMode.UNSUPPORTED;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return new PlannedStream(
            planning, new PythonStreamingPartitionReaderFactory(source, read, schema, Option.empty(), Option.empty()));
    }
}
